package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/relay"
	verdicts "github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/deliver"
)

// hold writes the record of commits that wait for a person, as a crash or a hostile
// program could leave it.
func (s *relayStage) hold(run, head string) *relay.Record {
	s.t.Helper()
	r := &relay.Record{
		Run: run, Account: "ann", Step: relay.Waiting, Head: head, Work: relay.Work{Key: "work", Base: strings.Repeat("0", 40)},
		Report: &verdicts.Report{Commits: []string{head}, Findings: []contentpolicy.Finding{{Rule: "protected-path", Verdict: contentpolicy.Approval, Path: "AGENTS.md"}}},
	}
	dir := filepath.Join(s.app.Paths.AtollState, deliver.Dir, "runs", run)
	text, err := json.Marshal(r)
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "record.json"), text, 0o600))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *relayStage) askAbout(r *relay.Record) (*approval.Question, error) {
	s.t.Helper()
	request, err := r.Question()
	if err != nil {
		s.t.Fatal(err)
	}
	return s.app.Commits.Approvals().Ask(s.t.Context(), request)
}

// An answer is for the commits that the person saw: when the record has others by
// then, nothing is pushed and the person is asked again.
func TestApprovalOfOtherCommits(t *testing.T) {
	s := newRelayStage(t)
	seen, err := s.askAbout(s.hold("run-1", strings.Repeat("a", 40)))
	if err != nil {
		t.Fatal(err)
	}
	s.hold("run-1", strings.Repeat("b", 40))
	if _, _, err := s.app.Commits.AnswerApproval(t.Context(), seen.ID, approval.Reply{Answer: approval.Once, Hash: seen.Hash, By: "ann"}); !errors.Is(err, approval.ErrChanged) {
		t.Errorf("got %v", err)
	}
	record, err := s.relays.Load("run-1")
	if err != nil || record.Step != relay.Waiting || record.Approved != "" {
		t.Errorf("%+v, %v", record, err)
	}
	open, err := s.app.Commits.Approvals().List(t.Context(), approval.Filter{Open: true})
	if err != nil || len(open) != 1 || open[0].ID == seen.ID || !strings.Contains(open[0].Evidence, strings.Repeat("b", 40)) {
		t.Errorf("%+v, %v", open, err)
	}
}

// A flood of questions is bounded, and keeps no person from the commits.
func TestFloodOfApprovals(t *testing.T) {
	s := newRelayStage(t)
	for i := range approval.MaxOpen {
		if _, err := s.askAbout(s.hold(fmt.Sprint("flood-", i), strings.Repeat("a", 40))); err != nil {
			t.Fatal(err)
		}
	}
	last := s.hold("last", strings.Repeat("b", 40))
	if _, err := s.askAbout(last); !errors.Is(err, approval.ErrTooMany) {
		t.Errorf("got %v", err)
	}
	relays, err := s.app.Commits.AuditedRelays()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.app.Commits.ApproveHold(t.Context(), relays, last, "ann"); err != nil || last.Step != relay.Judged || last.Approved != "ann" {
		t.Errorf("%+v, %v", last, err)
	}
}
