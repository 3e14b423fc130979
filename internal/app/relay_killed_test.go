package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/host"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/deliver"
)

// agentCommits is what an agent does before the rest of its command.
func agentCommits(rest string) fakellm.Turn {
	return fakellm.Use("exec", `{"command": "echo x > new && git add -A && `+asAgent+`commit -qm work; `+rest+`"}`)
}

// killAgent lets a process work on a branch and kills it when something is so.
func (s *relayStage) killAgent(run string, when func() bool) {
	s.t.Helper()
	cmd := s.process(order{Agent: "do it", Run: run, Branch: "work"})
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if !soon(when) {
		s.t.Error("the agent did not get there")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !wasKilled(cmd) {
		s.t.Fatalf("the process was not killed: %v", cmd.ProcessState)
	}
}

// inWorkspace is a file of the one private workspace.
func (s *relayStage) inWorkspace(path string) string {
	found, _ := filepath.Glob(filepath.Join(s.state, "sandboxes", "*", path))
	return strings.Join(found, " ")
}

// resume is what the next process does.
func (s *relayStage) resume() *relay.Record {
	s.t.Helper()
	found, err := s.open().Commits.Resume(s.t.Context())
	if err != nil || len(found) != 1 {
		s.t.Fatalf("%+v, %v", found, err)
	}
	return found[0]
}

func (s *relayStage) pushed() string {
	return s.server.Git(s.t, "org/project", "log", "--format=%s", "main..refs/heads/sandbox/work")
}

// An agent on the host is killed in the middle of its work: what it committed is
// taken by the next process and kept, as that of a run that failed, until a person
// wants it pushed.
//
// Seen to fail without the note that prepareBranch writes.
func TestCommitsOfAKilledAgentAreKept(t *testing.T) {
	s := newRelayStage(t)
	s.play(completionsAPI, agentCommits("touch committed; sleep 600"))
	s.killAgent("run-1", func() bool { return s.inWorkspace("wt/work/committed") != "" })
	record := s.resume()
	if record.Run != "run-1" || !record.Held || record.Step != relay.Judged || len(s.hub.Pulls()) != 0 {
		t.Errorf("%+v", record)
	}
	if err := s.app.Commits.Send(t.Context(), record); err != nil || s.pushed() != "work" || record.PullURL == "" {
		t.Errorf("%+v, %v", record, err)
	}
	if found, err := s.open().Commits.Resume(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("once more: %+v, %v", found, err)
	}
}

// One that had ended well, killed while its commits were taken out, is pushed: it
// has all that it needs. A repository that never answers stands in the way of the
// first process.
//
// Seen to fail with a Deliver that does not write down that the agent ended.
func TestCommitsOfAnAgentThatWasDoneArePushed(t *testing.T) {
	s := newRelayStage(t)
	s.play(completionsAPI, agentCommits("cd /workspace/.relay.git && mv HEAD kept && mkfifo HEAD"), fakellm.Say("done"))
	note := filepath.Join(s.state, deliver.Dir, "agents", "run-1.json")
	s.killAgent("run-1", func() bool {
		text, err := os.ReadFile(note)
		return err == nil && strings.Contains(string(text), `"held":false`)
	})
	if err := os.Rename(s.inWorkspace(".relay.git/kept"), s.inWorkspace(".relay.git/HEAD")); err != nil {
		t.Fatal(err)
	}
	if record := s.resume(); record.Step != relay.Done || record.PullURL == "" || s.pushed() != "work" {
		t.Errorf("%+v, pushed %q", record, s.pushed())
	}
	if _, err := os.Stat(note); err == nil {
		t.Error("the note is still there")
	}
}

// Whoever works on the branch next takes them first, and starts from there if
// they were pushed.
func TestTheNextAgentTakesWhatAKilledOneLeft(t *testing.T) {
	s := newRelayStage(t)
	s.play(completionsAPI, agentCommits("touch committed; sleep 600"), fakellm.Say("done"))
	s.killAgent("run-1", func() bool { return s.inWorkspace("wt/work/committed") != "" })
	w, err := s.open().Agents.NewWorker(t.Context(), host.Options{Run: "run-2", Branch: "work"})
	if err != nil {
		t.Fatal(err)
	}
	if record, err := s.relays.Load("run-1"); err != nil || record.Step != relay.Judged || !record.Held {
		t.Errorf("%+v, %v", record, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(filepath.Join(s.state, deliver.Dir, "agents", "*")); err != nil || len(left) != 0 {
		t.Errorf("an agent that never began left %v, %v", left, err)
	}
}
