package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
)

const commitWork = "echo x > new && git add -A && " + asAgent + "commit -qm work && answer"

func branchTask(id, key, script string) *execute.Task {
	task := scriptTask(id, script)
	task.Branch = key
	return task
}

// What an agent committed stays where it is until it is pushed: also when the
// server refuses, also when the process ends before it knows.
//
// Seen to fail with a relayFinisher that returns no error when Send does.
func TestInvariant_WORKSPACE_SURVIVES_FOR_PUSH(t *testing.T) {
	s := newRelayStage(t)
	b := openBureau(s.site, execute.Options{})
	hook := filepath.Join(s.server.Dir("org/project"), "hooks", "pre-receive")
	s.mkdir(filepath.Dir(hook))
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := b.runs.Do(t.Context(), branchTask("run-1", "work", commitWork), nil)
	if err == nil || r.Step != run.Settled {
		t.Fatalf("%+v, %v", r, err)
	}
	if found, err := filepath.Glob(filepath.Join(s.state, execute.Dir, "run-1", "*", "wt", "work", "new")); err != nil || len(found) != 1 {
		t.Errorf("the workspace is gone: %v, %v", found, err)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	next := openBureau(s.site, execute.Options{})
	if ended := next.runs.RecoverRuns(t.Context()); len(ended) != 1 || ended[0].Step != run.Over || ended[0].Notes["relay"] == "" {
		t.Errorf("%+v", ended)
	}
	if got := s.server.Git(t, "org/project", "log", "--format=%s", "main..sandbox/work"); got != "work" {
		t.Errorf("the branch has %q", got)
	}
	if _, err := os.Stat(filepath.Join(s.state, execute.Dir, "run-1")); err == nil {
		t.Error("the workspace is still there")
	}
}

// A run whose branch somebody else works on waits before it takes a place among
// those that work at once, and before its time begins; it says so.
//
// Seen to fail with a Gate that is passed after the queue.
func TestRelayWaitsForABranch(t *testing.T) {
	s := newRelayStage(t)
	b := openBureau(s.site, execute.Options{AtOnce: 1})
	book, err := filelock.Open(filepath.Join(s.state, "leases"))
	if err != nil {
		t.Fatal(err)
	}
	held, err := book.HoldInTurn(t.Context(), "relay branch busy", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	said := make(chan string, 10)
	type end struct {
		receipt *run.Receipt
		err     error
	}
	ended := make(chan end, 1)
	go func() {
		r, err := b.runs.Do(t.Context(), branchTask("run-1", "busy", commitWork), func(e run.Event) {
			if e.Type == "waiting" {
				said <- e.Text
			}
		})
		ended <- end{r, err}
	}()
	select {
	case text := <-said:
		if !strings.Contains(text, "waiting for branch sandbox/busy (1 before)") {
			t.Errorf("it says %q", text)
		}
	case <-time.After(patience):
		t.Fatal("it does not say that it waits")
	}
	if r := b.do(branchTask("run-2", "free", commitWork)); r.Error != nil {
		t.Errorf("another branch: %v", r.Error)
	}
	released := time.Now()
	held.Release()
	if first := <-ended; first.err != nil || first.receipt.Error != nil || first.receipt.Started.Before(released) {
		t.Errorf("%+v, %v", first.receipt, first.err)
	}
}
