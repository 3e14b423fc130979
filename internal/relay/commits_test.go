package relay_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// Commits of a repository of ours go the way of a run's, again and again, and never
// over others.
func TestTakeCommits(t *testing.T) {
	h := newHost(t)
	dir := filepath.Join(t.TempDir(), "work")
	p := newSandbox(t)
	agentDoes(t, p, "git clone -q "+h.server.Dir("project.git")+" "+dir+" && cd "+dir+" && git config user.name a && git config user.email a@localhost")
	send := func(run string) (*relay.Record, error) {
		t.Helper()
		repo, err := git.Open(filepath.Join(dir, ".git"), confined.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		c := relay.Commits{Repo: repo, Head: p.git(t, dir, "rev-parse", "HEAD"), Known: []string{p.git(t, dir, "rev-parse", "origin/main")}}
		o := &relay.TakeRequest{Run: run}
		o.Work.Key = "work"
		record, err := h.relay.TakeCommits(t.Context(), h.project, c, o)
		if err == nil {
			err = h.relay.Send(t.Context(), h.project, record)
		}
		return record, err
	}
	if record, err := send("run-0"); err != nil || record.Step != relay.Nothing {
		t.Errorf("without commits: %+v, %v", record, err)
	}
	for i, run := range []string{"run-1", "run-2"} {
		agentDoes(t, p, "cd "+dir+" && echo "+run+" > f && git add -A && git commit -qm "+run)
		if record, err := send(run); err != nil || record.Step != relay.Done || len(record.Report.Commits) != i+1 {
			t.Fatalf("%+v, %v", record, err)
		}
	}
	if got := h.server.Git(t, "project.git", "log", "--format=%an:%s", "main..sandbox/work"); got != "Atoll:run-2\nAtoll:run-1" {
		t.Errorf("the branch has %s", got)
	}
	if record, err := send("run-3"); err != nil || record.Step != relay.Nothing {
		t.Errorf("the same again: %+v, %v", record, err)
	}
	agentDoes(t, p, "cd "+dir+" && git reset -q --hard origin/main && echo other > f && git add -A && git commit -qm other")
	if record, err := send("run-4"); err == nil || !strings.Contains(err.Error(), "do not continue") {
		t.Errorf("over other commits: %+v, %v", record, err)
	}
	if got := h.server.Git(t, "project.git", "show", "sandbox/work:f"); got != "run-2" {
		t.Errorf("the branch has %s", got)
	}
}

// agentDoes runs a script of an agent.
func agentDoes(t *testing.T, p *sandbox, script string) {
	t.Helper()
	if err := p.Exec(t.Context(), &machine.Command{Argv: []string{"sh", "-ec", script}, Dir: "/"}); err != nil {
		t.Fatal(err)
	}
}
