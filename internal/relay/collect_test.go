package relay_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// shell runs a script where the agent works.
func (p *sandbox) shell(t *testing.T, script string) {
	t.Helper()
	if err := p.Exec(t.Context(), &machine.Command{Argv: []string{"sh", "-ec", script}, Dir: filepath.Join(p.root, "repo")}); err != nil {
		t.Fatal(err)
	}
}

// What an agent leaves is on its branch, or in a record of its own; nothing else
// is.
//
// Seen to fail with a collect.sh that prints no line for stashes.
func TestNothingIsLeftBehind(t *testing.T) {
	left := need.Rounds(5, 100) // cases to try, others each time
	for name, c := range map[string]struct {
		script  string
		branch  string // subjects on the branch
		pieces  string // what is kept beside it
		patch   string // of the first piece
		unsaved string
	}{
		"plain commit":             {script: "echo x > a; git add -A; git commit -qm one", branch: "one"},
		"nothing":                  {script: "true"},
		"only ignored files":       {script: "echo '*.o' >> \"$(git rev-parse --git-common-dir)/info/exclude\"; echo x > a.o"},
		"edited":                   {script: "echo x > README.md", branch: "uncommitted changes of run run-1"},
		"added":                    {script: "mkdir d; echo x > d/a; git add -A", branch: "uncommitted changes of run run-1"},
		"commits and leaves":       {script: "echo x > a; git add -A; git commit -qm one; echo later > b", branch: "one", pieces: "uncommitted changes", patch: "+later"},
		"detached":                 {script: "git checkout -q --detach; echo x > a; git add -A; git commit -qm one", branch: "one"},
		"other branch":             {script: "git checkout -q -b mine; echo x > a; git add -A; git commit -qm one", branch: "one"},
		"other branch, uncommited": {script: "git checkout -q -b mine; echo x > a; git add -A; git commit -qm one; echo y > b", branch: "one", pieces: "uncommitted changes"},
		"a branch that it left":    {script: "git checkout -q -b mine; echo x > a; git add -A; git commit -qm one; git checkout -q -", pieces: `commits on "mine"`, patch: "+x"},
		"detached, diverged":       {script: "echo x > a; git add -A; git commit -qm one; git checkout -q --detach HEAD~; echo y > b; git add -A; git commit -qm two", branch: "one", pieces: "commits on a detached HEAD"},
		"stash":                    {script: "echo x > a; git add -A; git commit -qm one; echo edit > README.md; echo fresh > new; git stash -q -u", branch: "one", pieces: "stashed changes", patch: "+fresh"},
		"a conflict":               {script: "git checkout -q -b mine; echo x > README.md; git commit -qam one; git checkout -q -; echo y > README.md; git commit -qam two; git merge -q mine || true", branch: "two", pieces: `uncommitted changes, commits on "mine"`},
		"branch deleted":           {script: "b=$(git symbolic-ref HEAD); echo x > a; git add -A; git commit -qm one; git checkout -q --detach; git update-ref -d $b", branch: "one"},
		"another repository":       {script: "git init -q sub; cd sub; git config user.name a; git config user.email a@localhost; echo x > a; git add -A; git commit -qm inner", unsaved: "cannot be committed"},
		"hooks that refuse":        {script: "echo 'exit 1' > \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"; chmod +x \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"; echo x > a", branch: "uncommitted changes of run run-1"},
		"the worktree is gone":     {script: "echo x > a; git add -A; git commit -qm one; rm -rf ../../wt/*", branch: "one"},
	} {
		if left--; left < 0 {
			break
		}
		t.Run(name, func(t *testing.T) {
			h, p := newHost(t), newSandbox(t)
			w := h.prepare(p, "work")
			p.shell(t, c.script)
			record := h.take(p, w, "run-1")
			h.send(record)
			got := ""
			if record.Step != relay.Nothing {
				got = h.server.Git(t, "project.git", "log", "--format=%s", "main..sandbox/work")
			}
			if got != c.branch {
				t.Errorf("the branch has %q, want %q", got, c.branch)
			}
			if got := h.pieces(record); got != c.pieces {
				t.Errorf("kept are %q, want %q", got, c.pieces)
			}
			if len(record.Pieces) > 0 && !strings.Contains(h.patch(record.Pieces[0].Run), c.patch) {
				t.Errorf("the patch of %s lacks %q", record.Pieces[0].Run, c.patch)
			}
			if (c.unsaved == "") != (record.Unsaved == "") || !strings.Contains(record.Unsaved, c.unsaved) {
				t.Errorf("unsaved: %q, want %q", record.Unsaved, c.unsaved)
			}
		})
	}
}

func (h *host) pieces(record *relay.Record) string {
	var all []string
	for _, piece := range record.Pieces {
		all = append(all, piece.What)
		if kept, err := h.relay.Load(piece.Run); err != nil || !kept.Held || kept.Step != relay.Judged {
			h.t.Errorf("%s: %+v, %v", piece.Run, kept, err)
		}
	}
	return strings.Join(all, ", ")
}

func (h *host) patch(run string) string {
	h.t.Helper()
	record, err := h.relay.Load(run)
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := h.relay.LoadPatch(record)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

// A piece is pushed to a branch of its own, when a person wants it.
func TestPieceIsPushed(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "work")
	p.shell(t, "echo x > a; git add -A; git commit -qm one; echo later > b")
	record := h.take(p, w, "run-1")
	piece, err := h.relay.Load(record.Pieces[0].Run)
	if err != nil {
		t.Fatal(err)
	}
	h.send(piece)
	if got := h.server.Git(t, "project.git", "show", piece.Work.Key.Branch()+":b"); got != "later" {
		t.Errorf("%s has %q", piece.Work.Key.Branch(), got)
	}
}

// What was there before the work began is not the work's.
func TestEarlierWorkIsNotTakenAgain(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	h.send(h.take(p, h.prepare(p, "first"), "run-1"))
	p.shell(t, "git checkout -q -b old; echo x > a; git add -A; git commit -qm old; echo y > b; git stash -q -u")
	if record := h.take(p, h.prepare(p, "second"), "run-2"); len(record.Pieces) > 0 || record.Unsaved != "" || record.Step != relay.Nothing {
		t.Errorf("%+v", record)
	}
}

// More than can be taken is said, and a sandbox that lies is not believed.
func TestHostileLeftovers(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		instead []string
		want    string
	}{
		"many branches": {script: "for i in 1 2 3 4 5 6 7 8 9 10; do git checkout -q -B b$i sandbox/work; echo $i > a; git add -A; git commit -qm $i; done; git checkout -q sandbox/work", want: "2 more branches and stashes than the 8"},
		"floods":        {instead: []string{"sh", "-c", "yes uncommitted"}, want: "uncommitted work"},
		"nonsense":      {instead: []string{"sh", "-c", "echo uncommitted refs/heads/x /etc"}, want: "cannot be read"},
		"no such ref":   {instead: []string{"sh", "-c", "echo uncommitted 1234567890123456789012345678901234567890 -"}, want: "uncommitted changes"},
		"fails":         {instead: []string{"false"}, want: "uncommitted work"},
	} {
		t.Run(name, func(t *testing.T) {
			h, p := newHost(t), newSandbox(t)
			w := h.prepare(p, "work")
			if c.instead != nil {
				p.instead = map[string][]string{"collect.sh runs": c.instead}
			} else {
				p.shell(t, c.script)
			}
			record, err := h.relay.Take(t.Context(), h.project, programs{p}.site(), &relay.TakeRequest{Run: "run-1", Work: *w})
			if err != nil || !strings.Contains(record.Unsaved, c.want) {
				t.Errorf("%+v, %v", record, err)
			}
		})
	}
}

// programs is a sandbox that says which errors are of the programs in it.
type programs struct{ *sandbox }

func (p programs) site() relay.Site { return relay.Site{Sandbox: p, Root: p.root, Link: "repo"} }

func (p programs) Exec(ctx context.Context, c *machine.Command) error {
	err := p.sandbox.Exec(ctx, c)
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("%w: %w", relay.ErrProgram, err)
	}
	return err
}
