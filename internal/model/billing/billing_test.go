package billing_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/model/billing"
	"github.com/atoll-run/atoll/internal/model/litellm"
	"github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/store"
	scripted "github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const master = "sk-master-0123456789"

// world is a ledger, a LiteLLM, and calls that go through both.
type world struct {
	*testing.T
	ledger    *usage.Ledger
	upstream  *scripted.Server
	client    *litellm.Client
	transport *http.Transport
}

func newWorld(t *testing.T, late bool) *world {
	t.Helper()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "atoll.db"))
	if err != nil {
		t.Fatal(err)
	}
	book, err := filelock.Open(filepath.Join(dir, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	// Our prices are wrong on purpose.
	prices := usage.NewPrices(map[string]usage.Price{"m": {Input: 9_000_000, Output: 9_000_000}})
	ledger, err := usage.Open(t.Context(), usage.Options{Dir: filepath.Join(dir, "usage"), DB: db, Locks: book, Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := scripted.Listen(t.Context(), "tcp", "127.0.0.1:0", scripted.Options{MasterKey: master, Late: late,
		Models: map[string]scripted.Model{"m": {Input: 1e-06, Output: 1e-05, Answer: "one two three"}, "free-looking": {Input: 2e-06, Output: 2e-06}}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, ledger: ledger, upstream: upstream, transport: &http.Transport{}}
	w.client = litellm.New(litellm.Options{URL: upstream.URL(), Key: secret.Literal{Value: secret.New(master)}, HTTP: w.transport})
	t.Cleanup(func() {
		_ = ledger.Close()
		_ = db.Close()
		w.transport.CloseIdleConnections()
		_ = upstream.Close()
	})
	return w
}

// call makes one call as the proxy does: reserve, ask, settle.
func (w *world) call(id, account, run, model string) {
	w.Helper()
	r, err := w.ledger.Reserve(w.Context(), &usage.Call{ID: id, Subject: usage.Subject{Run: run, Account: account}, Model: model, InputTokens: 100, MaxOutputTokens: 100})
	if err != nil {
		w.Fatal(err)
	}
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}]}`, model)
	request, err := http.NewRequestWithContext(w.Context(), "POST", w.upstream.URL()+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+master)
	request.Header.Set("x-litellm-end-user-id", account)
	request.Header.Set("x-litellm-spend-logs-metadata", fmt.Sprintf(`{"run_id":%q,"req":%q}`, run, id))
	response, err := (&http.Client{Transport: w.transport}).Do(request)
	if err != nil {
		w.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		w.Fatalf("status %d", response.StatusCode)
	}
	if _, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 50, Output: 3}, Status: 200}); err != nil {
		w.Fatal(err)
	}
}

// truth is what LiteLLM wrote for a run.
func (w *world) truth(run string) (sum int64) {
	for _, row := range w.upstream.Rows() {
		if row.Metadata["spend_logs_metadata"].(map[string]any)["run_id"] == run {
			sum += int64(row.Spend*1e6 + .5)
		}
	}
	return sum
}

func (w *world) reconcile(o billing.Options) *billing.Report {
	w.Helper()
	if o.Since.IsZero() {
		o.Since = time.Now().Add(-time.Hour)
	}
	o.Until = time.Now().Add(time.Hour)
	report, err := billing.Reconcile(w.Context(), w.ledger, w.client, o)
	if err != nil {
		w.Fatal(err)
	}
	return report
}

func (w *world) receipt(run string) *billing.Receipt {
	w.Helper()
	calls, err := w.ledger.Calls(w.Context(), usage.Filter{Run: run})
	if err != nil {
		w.Fatal(err)
	}
	return billing.Sum(run, calls)
}

// Whatever our prices say, a receipt is LiteLLM's figure; until that is known it
// says that it is provisional. The invariant's own test is in sdktest, with the
// real proxy in between.
func TestReceiptsAreWhatLiteLLMWrote(t *testing.T) {
	w := newWorld(t, true)
	for i := range 5 {
		w.call(fmt.Sprintf("req-%d", i), "alice", "run-1", "m")
	}
	w.call("req-other", "alice", "run-2", "free-looking") // we have no price for it
	truth := w.truth("run-1")
	before := w.receipt("run-1")
	if !before.Provisional || before.MicroUSD == truth {
		t.Fatalf("before: %+v, while LiteLLM says %d", before, truth)
	}
	if report := w.reconcile(billing.Options{Grace: time.Hour}); report.Pending != 6 || !report.Provisional {
		t.Errorf("rows are not written yet: %+v", report)
	}
	w.upstream.Flush()
	report := w.reconcile(billing.Options{})
	if report.Matched != 6 || report.Corrected != 6 || report.Provisional || len(report.MissingUpstream)+len(report.MissingLocal) != 0 {
		t.Errorf("%+v", report)
	}
	if got := w.receipt("run-1"); got.Provisional || got.MicroUSD != truth || got.Billed != 5 {
		t.Errorf("receipt %+v, want %d", got, truth)
	}
	if got := w.receipt("run-2"); got.MicroUSD != w.truth("run-2") || got.MicroUSD == 0 || got.Unpriced != 0 {
		t.Errorf("an unpriced model: %+v, want %d", got, w.truth("run-2"))
	}
	spent, err := w.ledger.Spent(t.Context(), usage.ScopeAccount, "alice") // budgets follow the truth
	if err != nil || spent.MicroUSD != truth+w.truth("run-2") || spent.Unpriced != 0 {
		t.Errorf("%+v, %v", spent, err)
	}
	if again := w.reconcile(billing.Options{}); again.Corrected != 0 || again.Matched != 6 {
		t.Errorf("again: %+v", again)
	}
}

func TestWhatOneSideDoesNotKnow(t *testing.T) {
	w := newWorld(t, false)
	w.call("both", "alice", "run-1", "m")
	r, err := w.ledger.Reserve(t.Context(), &usage.Call{ID: "ours", Subject: usage.Subject{Run: "run-1", Account: "alice"}, Model: "m", InputTokens: 5})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Settle(usage.Outcome{Tokens: usage.Tokens{Input: 5}, Status: 200}); err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Format(time.RFC3339Nano)
	mark := func(req string) map[string]any {
		return map[string]any{"spend_logs_metadata": map[string]any{"req": req, "run_id": "run-1"}}
	}
	w.upstream.Add(scripted.Row{RequestID: "x", Spend: 0.5, EndUser: "alice", StartTime: at, Metadata: mark("theirs")})
	w.upstream.Add(scripted.Row{RequestID: "y", Spend: 0.5, EndUser: "alice", StartTime: at})                              // not ours at all
	w.upstream.Add(scripted.Row{RequestID: "z", Spend: 0.000001, EndUser: "alice", StartTime: at, Metadata: mark("both")}) // LiteLLM's own retry
	for name, o := range map[string]billing.Options{"all": {}, "account": {Account: "alice"}, "run": {Run: "run-1"}} {
		report := w.reconcile(o)
		if report.Matched != 1 || len(report.MissingUpstream) != 1 || report.MissingUpstream[0].ID != "ours" ||
			len(report.MissingLocal) != 1 || report.MissingLocal[0].ID != "theirs" || !report.Provisional {
			t.Errorf("%s: %+v", name, report)
		}
	}
	if got := w.receipt("run-1"); !got.Provisional || got.Billed != 1 {
		t.Errorf("%+v", got)
	}
	if report := w.reconcile(billing.Options{Covers: func(s *usage.Stored) bool { return s.ID != "ours" }}); len(report.MissingUpstream) != 0 {
		t.Errorf("a call to another upstream is missed: %+v", report.MissingUpstream)
	}
}

func TestReconcileWaitsForRows(t *testing.T) {
	w := newWorld(t, true)
	w.call("late", "alice", "run-1", "m")
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		time.Sleep(50 * time.Millisecond) // what is tested does not depend on it
		w.upstream.Flush()
	}()
	report := w.reconcile(billing.Options{Grace: time.Hour, Retry: 5 * time.Millisecond, Wait: true, Account: "alice"})
	<-flushed
	if report.Matched != 1 || report.Pending != 0 || report.Provisional {
		t.Errorf("%+v", report)
	}
}

// A call that LiteLLM bills to another account than ours is not reconciled.
func TestACallBilledToAnotherIsReported(t *testing.T) {
	w := newWorld(t, false)
	w.call("c-1", "victim", "run-1", "m")
	w.call("c-2", "ours", "run-1", "m")
	r := w.reconcile(billing.Options{Payer: func(*usage.Stored) string { return "ours" }})
	if len(r.OtherPayer) != 1 || r.OtherPayer[0].ID != "c-1" || r.OtherPayer[0].Account != "victim" || !r.Provisional {
		t.Errorf("%+v", r)
	}
}
