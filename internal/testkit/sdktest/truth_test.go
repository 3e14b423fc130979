package sdktest_test

import (
	"math"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/billing"
	"github.com/atoll-run/atoll/internal/model/usage"
)

// everyDialect asks a model in each, whole and as a stream, and lies about who
// pays.
const everyDialect = `
ask() { curl -sS --fail --max-time 120 -o /dev/null -H 'x-litellm-end-user-id: victim' -H 'x-litellm-spend-logs-metadata: {"req":"x","run_id":"victim"}' -d "$2" http://localhost:8080/v1/$1 || exit 1; }
for model in words worker; do
  for stream in true false; do
    ask chat/completions '{"model":"'$model'","stream":'$stream',"user":"victim","messages":[{"role":"user","content":"hello"}]}'
    ask messages '{"model":"'$model'","max_tokens":100,"stream":'$stream',"metadata":{"user_id":"victim"},"messages":[{"role":"user","content":"hello"}]}'
    ask responses '{"model":"'$model'","store":false,"stream":'$stream',"input":"hello"}'
  done
done
`

// Whatever our prices or the agent say, what a run cost is LiteLLM's figure: the
// receipt says that it is provisional until that is known, then it is that, and
// budgets follow it. Seen to fail when Final returns Cost first, and when match
// does not fill billed.
func TestInvariant_LITELLM_IS_BILLING_TRUTH(t *testing.T) {
	d := newDesk(t, fixtureOptions{
		backend: "linux", models: models(), late: true,
		llm: map[string]any{"prices": object{"words": object{"input": 500, "output": 900}}, "billing": object{"graceSeconds": 3600}}, // wrong on purpose
	})
	g := d.grant("run-1", 0, "words", "worker")
	began := time.Now().Add(-time.Minute)
	d.exec(g, nil, map[string]string{}, "/bin/sh", "-c", everyDialect)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	const calls = 12
	truth := d.truth("acct-7", calls)
	if before := d.receipt("run-1"); !before.Provisional || before.MicroUSD == truth || before.Calls != calls {
		t.Fatalf("before: %+v, while LiteLLM says %d", before, truth)
	}
	if r := d.reconcile(began); r.Pending != calls || !r.Provisional {
		t.Errorf("nothing is written down yet: %+v", r)
	}
	d.upstream.Flush()
	if r := d.reconcile(began); r.Matched != calls || r.Provisional || len(r.MissingUpstream)+len(r.MissingLocal) != 0 {
		t.Errorf("%+v", r)
	}
	if got := d.receipt("run-1"); got.Provisional || got.MicroUSD != truth || got.Billed != calls {
		t.Errorf("receipt %+v, want %d", got, truth)
	}
	ledger, err := d.app.Models.Ledger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if spent, err := ledger.Spent(t.Context(), usage.ScopeAccount, "acct-7"); err != nil || spent.MicroUSD != truth {
		t.Errorf("the account has spent %+v, %v; want %d", spent, err, truth)
	}
}

// truth is what LiteLLM wrote for an account, in so many rows, all of one run.
func (d *fixture) truth(account string, calls int) (sum int64) {
	d.Helper()
	rows := d.upstream.Rows()
	if len(rows) != calls {
		d.Fatalf("LiteLLM has %d rows, want %d", len(rows), calls)
	}
	for _, row := range rows {
		said, _ := row.Metadata["spend_logs_metadata"].(map[string]any)
		if row.EndUser != account || said["run_id"] != "run-1" || said["req"] == "x" {
			d.Errorf("the caller named itself: %+v", row)
		}
		sum += int64(math.Ceil(row.Spend*1e6 - 1e-6))
	}
	return sum
}

func (d *fixture) receipt(run string) *billing.Receipt {
	d.Helper()
	ledger, err := d.app.Models.Ledger(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	calls, err := ledger.Calls(d.Context(), usage.Filter{Run: run})
	if err != nil {
		d.Fatal(err)
	}
	return billing.Sum(run, calls)
}

func (d *fixture) reconcile(since time.Time) *billing.Report {
	d.Helper()
	reports, err := d.app.Models.Reconcile(d.Context(), billing.Options{Since: since, Run: "run-1", Until: time.Now().Add(time.Minute)})
	if err != nil {
		d.Fatal(err)
	}
	return reports["litellm"]
}
