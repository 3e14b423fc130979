package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/content"
)

// Only commits that wait for a person are a question, and its evidence names what
// is pushed: other commits or other findings are other evidence.
func TestHoldIsAQuestion(t *testing.T) {
	report := &content.Report{Commits: []string{"c1"}, Findings: []contentpolicy.Finding{{Rule: "protected-path", Path: "<AGENTS.md>"}}}
	record := func(change func(*relay.Record)) *relay.Record {
		r := &relay.Record{Run: "run-1", Account: "ann", Agent: "main", Step: relay.Waiting, Head: "h1", Report: report, Work: relay.Work{Key: "work", Base: "b"}}
		change(r)
		return r
	}
	hash := func(r *relay.Record) string {
		q, err := r.Question()
		if err != nil || q.Kind != relay.HoldKind || q.Subject != "run-1" || q.Owner.Account != "ann" || !strings.Contains(q.Evidence, "<AGENTS.md>") {
			t.Fatalf("%+v, %v", q, err)
		}
		return approval.HashOf(q.Evidence)
	}
	same := hash(record(func(*relay.Record) {}))
	if again := hash(record(func(r *relay.Record) { r.Trouble = "later" })); again != same {
		t.Error("the same commits are other evidence")
	}
	if other := hash(record(func(r *relay.Record) { r.Head = "h2" })); other == same {
		t.Error("other commits are the same evidence")
	}
	for name, c := range map[string]struct {
		change func(*relay.Record)
		want   bool
	}{
		"waiting":       {func(*relay.Record) {}, true},
		"denied":        {func(r *relay.Record) { r.Denied = "ann" }, false},
		"blocked":       {func(r *relay.Record) { r.Step = relay.Blocked }, false},
		"failed run":    {func(r *relay.Record) { r.Step, r.Held = relay.Judged, true }, true},
		"may be pushed": {func(r *relay.Record) { r.Step = relay.Judged }, false},
		"done":          {func(r *relay.Record) { r.Step, r.Held = relay.Done, true }, false},
	} {
		if got := record(c.change).NeedsPerson(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The evidence of the worst commits that can wait fits a question.
func TestHoldEvidenceIsBounded(t *testing.T) {
	report := &content.Report{Commits: []string{"c1"}}
	for i := range 200 {
		report.Findings = append(report.Findings, contentpolicy.Finding{
			Rule: "protected-path", Verdict: contentpolicy.Approval, Commit: strings.Repeat("f", 40), Path: fmt.Sprint(i) + strings.Repeat(`"<`, 510), Detail: strings.Repeat("d", 300),
		})
	}
	r := &relay.Record{Run: "run-1", Step: relay.Waiting, Report: report, Work: relay.Work{Key: "work"}}
	q, err := r.Question()
	if err != nil || len(q.Evidence) > approval.MaxEvidence {
		t.Errorf("%d bytes, %v", len(q.Evidence), err)
	}
}
