package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/run"
	"github.com/atoll-run/atoll/internal/run/execute"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// standIn plays every agent: it does what the task names, and answers as the
// program would whose name it has.
const standIn = `#!/bin/sh
task=$(cat /workspace/.cogni/prompt.txt /workspace/.cogni/messages.json 2>/dev/null)
case $task in
*commits*) echo work > new && git add -A && git commit -qm work || exit 1 ;;
*edits*) echo work > new ;;
*dies*) echo work > new && git add -A && git commit -qm work && echo half > more; kill -9 $$ ;;
esac
case "$0 $*" in
*claude*) echo '{"type":"result","is_error":false,"result":"done"}' ;;
*codex*) echo '{"type":"item.completed","item":{"type":"agent_message","text":"done"}}' ;;
*) echo '` + goodEnvelope + `' ;;
esac
`

// everyVariant is a site whose agents of every kind are the stand-in.
func everyVariant(s *relayStage) (*bureau, []string) {
	s.t.Helper()
	dir := s.t.TempDir()
	program := filepath.Join(dir, "agent")
	modules := filepath.Join(dir, "openclaw", "node_modules")
	for _, d := range []string{filepath.Join(modules, ".bin"), filepath.Join(modules, "openclaw")} {
		s.mkdir(d)
	}
	for file, text := range map[string]string{
		program: standIn, filepath.Join(modules, ".bin", "node"): standIn, filepath.Join(modules, "openclaw", "package.json"): `{"version":"2026.9.6"}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	otheruser.Open(s.t, dir)
	s.set("runs.openclaw.install", filepath.Join(dir, "openclaw"))
	var more []run.Variant
	for _, name := range []string{"claude-code", "codex"} {
		custom, _ := run.Preset(name)
		custom.ID, custom.Argv[0] = name, "/opt/agents/"+custom.Argv[0]
		v := custom.Variant()
		v.Mounts = []run.Mount{{Source: program, Target: custom.Argv[0]}}
		more = append(more, v)
	}
	custom := run.Custom{ID: "custom", Argv: []string{"/opt/agents/custom", "{task-file}"}}.Variant()
	custom.Mounts = []run.Mount{{Source: program, Target: "/opt/agents/custom"}}
	more = append(more, custom)
	a := s.open()
	runs, err := a.Runs.Open(execute.Options{Program: program, Variants: more, Demo: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := runs.Close(); err != nil {
			s.t.Error(err)
		}
	})
	return &bureau{s.site, a, runs}, []string{"sandbox:agent", "sandbox:openclaw", "claude-code", "codex", "custom"}
}

// Whatever an agent of any kind leaves, it is on its branch, or on the host where
// the receipt says.
//
// Seen to fail without the call of takePieces in Relay.Take, and without the step
// in Relay.Prepare that names who commits.
func TestInvariant_NO_WORK_VANISHES(t *testing.T) {
	s := newRelayStage(t)
	b, variants := everyVariant(s)
	for _, variant := range variants[:need.Rounds(2, len(variants))] {
		for does, want := range map[string]struct {
			code, state, subject string
			pieces               int
		}{
			"commits": {"", "done", "work", 0},
			"edits":   {"", "done", "uncommitted changes of run ", 0},
			"dies":    {"killed", "held", "", 1},
		} {
			t.Run(variant+" "+does, func(t *testing.T) {
				id := strings.NewReplacer(":", "-", " ", "-").Replace(variant + "-" + does)
				r := b.do(&execute.Task{ID: id, Variant: variant, Branch: "b-" + id, Messages: []chat.Message{{Role: chat.User, Text: does}}})
				if codeOf(r) != want.code || r.Delivery == nil || r.Delivery.State != want.state {
					t.Fatalf("%+v, delivery %+v, error %+v", r, r.Delivery, r.Error)
				}
				record, err := s.relays.Load(id)
				if err != nil || len(record.Pieces) != want.pieces || record.Unsaved != "" {
					t.Fatalf("%+v, %v", record, err)
				}
				if want.state == "done" {
					if got := s.server.Git(t, "org/project", "log", "--format=%s", "main..sandbox/b-"+id); !strings.HasPrefix(got, want.subject) || strings.Contains(got, "\n") {
						t.Errorf("the branch has %q", got)
					}
					if r.Delivery.Pull == "" {
						t.Error("the receipt has no address of the pull request")
					}
					return
				}
				s.hasPatch(t, record, "+work")
				piece, err := s.relays.Load(record.Pieces[0].Run)
				if err != nil {
					t.Fatal(err)
				}
				s.hasPatch(t, piece, "+half")
			})
		}
	}
}

// What a server refuses stays in the run's workspace, and the next process sends
// it: for agents of every kind.
func TestRefusedPushKeepsTheWork(t *testing.T) {
	s := newRelayStage(t)
	b, variants := everyVariant(s)
	variants = variants[:need.Rounds(2, len(variants))]
	hook := filepath.Join(s.server.Dir("org/project"), "hooks", "pre-receive")
	s.mkdir(filepath.Dir(hook))
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, variant := range variants {
		id := fmt.Sprintf("run-%d", i)
		r, err := b.runs.Do(t.Context(), &execute.Task{ID: id, Variant: variant, Branch: "b-" + id, Messages: []chat.Message{{Role: chat.User, Text: "edits"}}}, nil)
		if err == nil || !strings.Contains(err.Error(), "git push") || r.Step != run.Settled {
			t.Errorf("%s: %+v, %v", variant, r, err)
		}
		if found, err := filepath.Glob(filepath.Join(s.state, execute.Dir, id, "*", "wt", "b-"+id, "new")); err != nil || len(found) != 1 {
			t.Errorf("%s: the workspace is gone: %v, %v", variant, found, err)
		}
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	ended := b.runs.RecoverRuns(t.Context())
	if len(ended) != len(variants) {
		t.Errorf("%d runs were ended", len(ended))
	}
	for _, r := range ended {
		if r.Delivery == nil || r.Delivery.State != "done" {
			t.Errorf("%s: %+v", r.ID, r.Delivery)
		}
	}
}

func (s *relayStage) hasPatch(t *testing.T, record *relay.Record, line string) {
	t.Helper()
	if text, err := s.relays.LoadPatch(record); err != nil || !strings.Contains(string(text), line) {
		t.Errorf("the patch of %s: %s, %v", record.Run, text, err)
	}
}

// What no commit can hold stays as files, and the receipt says where.
func TestWorkThatCannotBeTakenIsKept(t *testing.T) {
	s := newRelayStage(t)
	b := openBureau(s.site, execute.Options{})
	for id, c := range map[string]struct{ script, state, file string }{
		"nested":    {"git init -q sub && echo x > sub/a && answer", "kept", "sub/a"},
		"rewritten": {"git checkout -q --orphan other && git commit -qm x && git branch -D sandbox/b-rewritten && echo x > b && git add b && git commit -qm y && answer", "refused", "b"},
	} {
		r := b.do(branchTask(id, "b-"+id, c.script))
		if r.Delivery == nil || r.Delivery.State != c.state || !r.Delivery.Undelivered() {
			t.Errorf("%s: %+v", id, r.Delivery)
			continue
		}
		kept := filepath.Join(s.state, execute.KeptDir, id)
		if !strings.Contains(r.Delivery.Note, kept) {
			t.Errorf("%s: the note %q does not say %s", id, r.Delivery.Note, kept)
		}
		if _, err := os.Stat(filepath.Join(kept, "wt", "b-"+id, c.file)); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(s.state, execute.Dir)); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Commits over a limit are blocked, which is no success, and named.
func TestBlockedWorkIsNoSuccess(t *testing.T) {
	s := newRelayStage(t)
	b := openBureau(s.site, execute.Options{})
	r := b.do(branchTask("large", "large", "head -c 30000000 /dev/urandom > big && answer"))
	if r.Delivery == nil || !r.Delivery.Denied() || !strings.Contains(r.Notes["relay"], "atoll relay status large") {
		t.Errorf("%+v, %v", r.Delivery, r.Notes)
	}
}
