package take_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/gate/take"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/content"
)

// agent is a copy of a repository that plays the workspace in a sandbox.
type agent struct {
	t       *testing.T
	dir     string
	instead func(*machine.Command) *machine.Command // nil runs what is asked for
}

func (a *agent) Exec(ctx context.Context, c *machine.Command) error {
	if a.instead != nil {
		c = a.instead(c)
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout = c.Dir, c.Stdin, c.Stdout
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + a.dir}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %w: %s", relay.ErrProgram, err, said.String())
	}
	return nil
}

// scene is a person's repository, and an agent with a copy of it.
type scene struct {
	*take.Workspace
	t     *testing.T
	top   string
	home  string
	agent *agent
}

// newScene makes a repository by a script, and gives a copy of it to an agent.
func newScene(t *testing.T, script string) *scene {
	t.Helper()
	root := t.TempDir()
	s := &scene{t: t, top: filepath.Join(root, "project"), home: filepath.Join(root, "home"), agent: &agent{t: t, dir: filepath.Join(root, "workspace")}}
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		t.Fatal(err)
	}
	s.shell(root, "git init -q -b main project && cd project && git config user.name p && git config user.email p@localhost && echo one > a && echo two > b && git add . && git commit -qm one && "+script)
	s.shell(root, "cp -a project workspace")
	c, err := checkout.At(s.top)
	if err != nil {
		t.Fatal(err)
	}
	s.Workspace = &take.Workspace{
		Sandbox: s.agent, Dir: s.agent.dir, Checkout: c, State: filepath.Join(root, "state"), Slug: "dir-1234", Policy: take.LocalPolicy(content.Policy{}),
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GNUPGHOME=" + s.home, "TMPDIR=" + os.TempDir()},
	}
	return s
}

func (s *scene) shell(dir, script string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "GNUPGHOME=" + s.home, "TMPDIR=" + os.TempDir()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return strings.TrimSpace(string(out))
}

// work is what the agent does.
func (s *scene) work(script string) {
	s.t.Helper()
	s.shell(s.agent.dir, "export HOME=/nonexistent; "+script)
}

// host is what git says in the person's repository.
func (s *scene) host(script string) string { s.t.Helper(); return s.shell(s.top, script) }

// tree is everything of the person that must stay as it is.
func (s *scene) tree() string {
	s.t.Helper()
	return s.host("git status --porcelain=v2 --branch; sha256sum .git/index .git/HEAD .git/config a b; find . -path ./.git -prune -o -printf '%p %m %T@\\n'; ls .git/hooks")
}

func (s *scene) take(r take.Request) *take.Taken {
	s.t.Helper()
	taken, err := s.Take(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return taken
}

const commit = "git add -A && git commit -q -m "

// The agent's commits become a branch, again and again; the work tree stays.
func TestTake(t *testing.T) {
	s := newScene(t, "true")
	before := s.tree()
	if _, err := s.Take(t.Context(), take.Request{}); !errors.Is(err, take.ErrNothing) {
		t.Errorf("without commits: %v", err)
	}
	s.work("echo x >> a && " + commit + "first && echo y > new && " + commit + "second")
	offer, err := s.Commits(t.Context(), "")
	if err != nil || len(offer.Commits) != 2 || offer.Branch != "main" || offer.Verdict != "" {
		t.Fatalf("%+v, %v", offer, err)
	}
	if c := offer.Commits[1]; c.Subject != "second" || c.Author != "p <p@localhost>" || strings.Join(c.Files, " ") != "new" {
		t.Errorf("the commit is %+v", c)
	}
	taken := s.take(take.Request{})
	if taken.Branch != "atoll/main" || !taken.Created || taken.Commits != 2 || taken.Signed || taken.Head != offer.Head {
		t.Errorf("%+v", taken)
	}
	s.work("echo z >> a && " + commit + "third")
	if taken = s.take(take.Request{}); taken.Branch != "atoll/main" || taken.Created || taken.Commits != 1 {
		t.Errorf("%+v", taken)
	}
	if got := s.host("git log --format=%s main..atoll/main && git rev-parse atoll/main refs/atoll/dir-1234/atoll%2fmain && git fsck --strict 2>&1"); got != "third\nsecond\nfirst\n"+taken.Head+"\n"+taken.Head {
		t.Errorf("the host has %s", got)
	}
	if after := s.tree(); after != before {
		t.Errorf("the work tree was\n%s\nand is\n%s", before, after)
	}
	if _, err := s.Take(t.Context(), take.Request{}); !errors.Is(err, take.ErrNothing) {
		t.Errorf("after all was taken: %v", err)
	}
}

// Branches are chosen so that nothing of the person moves.
func TestBranches(t *testing.T) {
	for name, c := range map[string]struct {
		host, work, hostAfter string
		request               take.Request
		branch, err, note     string
	}{
		"its own branch":           {work: "git checkout -q -b fix; echo x > x; " + commit + "x", branch: "fix"},
		"a name":                   {work: "echo x > x; " + commit + "x", request: take.Request{Branch: "feature/x"}, branch: "feature/x"},
		"detached":                 {work: "git checkout -q --detach; echo x > x; " + commit + "x", branch: "atoll/detached"},
		"another branch":           {work: "git checkout -q -b side; echo x > x; " + commit + "x; git checkout -q main", request: take.Request{From: "side"}, branch: "side"},
		"no such branch":           {work: "true", request: take.Request{From: "side"}, err: "no branch side"},
		"forward":                  {host: "git branch fix", work: "git checkout -q fix; echo x > x; " + commit + "x", branch: "fix"},
		"checked out":              {work: "echo x > x; " + commit + "x", request: take.Request{Branch: "main"}, err: "checked out"},
		"checked out elsewhere":    {host: "git worktree add -q -b side ../side", work: "git checkout -q -B side2 side; echo x > x; " + commit + "x", request: take.Request{Branch: "side"}, err: "checked out"},
		"diverged":                 {host: "git branch fix", work: "git checkout -q fix; echo x > a; " + commit + "x", hostAfter: "git checkout -q fix; echo y > a; " + commit + "y; git checkout -q main", err: "has commits that the agent's has not; a merge has conflicts in \"a\""},
		"checked out and diverged": {work: "echo x > a; " + commit + "x", hostAfter: "echo y > a; " + commit + "y", request: take.Request{Branch: "main"}, err: "has commits that the agent's has not; a merge has conflicts in \"a\""},
		"the host went on":         {work: "echo x > a; " + commit + "x", hostAfter: "echo y > a; " + commit + "y", branch: "atoll/main", note: "do not build on; a merge has conflicts in \"a\""},
		"bad name":                 {request: take.Request{Branch: "../x"}, err: "cannot name a branch"},
		"option as a name":         {request: take.Request{Branch: "-x"}, err: "cannot name a branch"},
		"orphan":                   {work: "git checkout -q --orphan new; git rm -rqf .; echo x > x; " + commit + "x", branch: "new", note: "do not build on"},
		"merge of a host's branch": {host: "git checkout -q -b other; echo o > o; " + commit + "o; git checkout -q main", work: "echo x > x; " + commit + "x; git merge -q --no-edit other", branch: "atoll/main"},
		"rebased":                  {host: "git checkout -q -b other; echo o > o; " + commit + "o; git checkout -q main", work: "git checkout -q -b mine; echo x > x; " + commit + "x; git rebase -q other", branch: "mine"},
		"collides":                 {host: "git branch fix/a", work: "git branch -D fix/a; git checkout -q -b fix; echo x > x; " + commit + "x", err: "cannot be beside fix/a"},
		"moved by the person":      {work: "echo x > x; " + commit + "x", request: take.Request{Head: "1234567890123456789012345678901234567890"}, err: "changed meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, or(c.host, "true"))
			s.work(or(c.work, "true"))
			s.host(or(c.hostAfter, "true"))
			before := s.tree()
			taken, err := s.Take(t.Context(), c.request)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("%v, want %q", err, c.err)
			}
			if after := s.tree(); after != before {
				t.Errorf("the work tree was\n%s\nand is\n%s", before, after)
			}
			if err != nil {
				return
			}
			if taken.Branch != c.branch || s.host("git rev-parse "+c.branch+" && git fsck --strict 2>&1") != taken.Head {
				t.Errorf("%+v", taken)
			}
			if notes := strings.Join(taken.Notes, "; "); (notes == "") != (c.note == "") || !strings.Contains(notes, c.note) {
				t.Errorf("the notes are %q", notes)
			}
		})
	}
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// An error of a branch that is checked out names the command, which then works.
func TestCheckedOutCommand(t *testing.T) {
	s := newScene(t, "true")
	s.work("echo x > x && " + commit + "x")
	_, err := s.Take(t.Context(), take.Request{Branch: "main"})
	if !errors.Is(err, take.ErrCheckedOut) {
		t.Fatal(err)
	}
	if got := s.host("git merge -q --ff-only refs/atoll/dir-1234/main && cat x"); got != "x" {
		t.Errorf("after the merge: %q", got)
	}
	if offer, err := s.Commits(t.Context(), ""); err != nil || len(offer.Commits) > 0 {
		t.Errorf("there is still %+v, %v", offer, err)
	}
}

// An agent that amends what was taken moves its branch, unless the person has
// commits there.
func TestAmended(t *testing.T) {
	s := newScene(t, "true")
	s.work("echo x > x && " + commit + "x")
	s.take(take.Request{})
	s.work("echo y > x && git commit -q --amend -am y")
	if taken := s.take(take.Request{}); len(taken.Notes) != 1 || !strings.Contains(taken.Notes[0], "rewrote") {
		t.Errorf("%+v", taken)
	}
	s.host("git checkout -q atoll/main && echo z > z && " + commit + "z && git checkout -q main")
	s.work("echo z > x && git commit -q --amend -am z")
	if _, err := s.Take(t.Context(), take.Request{}); !errors.Is(err, take.ErrDiverged) {
		t.Errorf("over a commit of the person: %v", err)
	}
}

// What the policy finds is told, and a person decides on exactly that.
func TestPolicy(t *testing.T) {
	const secret = "aws_access_key_id = AKIAQ3EGPIQZ5PWNMGTX"
	for name, c := range map[string]struct {
		work    string
		verdict contentpolicy.Verdict
		request take.Request
		takes   bool
	}{
		"a workflow":               {work: "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml", verdict: contentpolicy.Approval},
		"a workflow, approved":     {work: "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml", verdict: contentpolicy.Approval, request: take.Request{Approved: true}, takes: true},
		"a secret":                 {work: "echo '" + secret + "' > k", verdict: contentpolicy.Blocked},
		"a secret, approved":       {work: "echo '" + secret + "' > k", verdict: contentpolicy.Blocked, request: take.Request{Approved: true}},
		"a secret, overridden":     {work: "echo '" + secret + "' > k", verdict: contentpolicy.Blocked, request: take.Request{Override: "a test key"}, takes: true},
		"a secret in history":      {work: "echo '" + secret + "' > k; " + commit + "k; rm k", verdict: contentpolicy.Blocked},
		"a link out":               {work: "ln -s /etc/passwd l", verdict: contentpolicy.Blocked, request: take.Request{Approved: true, Override: "no"}},
		"another repository":       {work: "git init -q sub; git -C sub -c user.name=a -c user.email=a commit -q --allow-empty -m x", verdict: contentpolicy.Approval},
		"a hook of git in a tree":  {work: "mkdir -p .husky && echo x > .husky/pre-commit", verdict: contentpolicy.Approval},
		"nothing to be said about": {work: "echo x > x", takes: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "true")
			s.work(c.work + "; git add -A 2>/dev/null; git commit -qm x")
			offer, err := s.Commits(t.Context(), "")
			if err != nil || offer.Verdict != c.verdict {
				t.Fatalf("%+v, %v", offer, err)
			}
			if c.request != (take.Request{}) {
				if _, err := s.Take(t.Context(), c.request); err == nil {
					t.Error("it was taken without the commit that was seen")
				}
				c.request.Head = offer.Head
			}
			_, err = s.Take(t.Context(), c.request)
			if refused := new(take.Refused); (err == nil) != c.takes || err != nil && !errors.As(err, &refused) {
				t.Errorf("%v", err)
			}
			if got := s.host("git for-each-ref --format='%(refname)' refs/atoll refs/heads/atoll | wc -l"); (got == "0") == c.takes {
				t.Errorf("the host has %s refs", got)
			}
		})
	}
}

// A file is committed if the agent has it in a commit as it is.
func TestCommitted(t *testing.T) {
	s := newScene(t, "echo c > c; git checkout -q -b other; echo o > o; "+commit+"o; git checkout -q main; echo edited > b")
	s.work("git checkout -q -- b; git checkout -q -b mine; echo x > x; echo y > y; chmod +x y; ln -s a l; git rm -q a; echo e > e; " + commit + "x; echo later >> y; echo more > m; chmod +x e")
	offer, err := s.Commits(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"x": true, "l": true, "a": true, "y": false, "m": false, "b": false, "e": false}
	for name, in := range s.committed(offer, "x", "l", "a", "y", "m", "b", "e") {
		if in != want[name] {
			t.Errorf("%s: %v", name, in)
		}
	}
	s.work("git stash -q -u; git checkout -q other")
	if offer, err = s.Commits(t.Context(), ""); err != nil || len(offer.Commits) > 0 || strings.Join(offer.Others, " ") != "mine" {
		t.Fatalf("%+v, %v", offer, err)
	}
	if got := s.committed(offer, "o", "x", "a"); !got["o"] || got["x"] || got["a"] {
		t.Errorf("on another branch of the host: %v", got)
	}
}

// committed asks for the state of paths in the agent's work tree.
func (s *scene) committed(offer *take.Offer, names ...string) map[string]bool {
	s.t.Helper()
	has, err := offer.Committed(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	got := map[string]bool{}
	for _, name := range names {
		blob := s.shell(s.agent.dir, "if [ -L "+name+" ]; then readlink -n "+name+" | git hash-object --stdin; elif [ -e "+name+" ]; then git hash-object "+name+"; fi")
		mode := fs.FileMode(0)
		if info, err := os.Lstat(filepath.Join(s.agent.dir, name)); err == nil {
			mode = info.Mode()
		}
		got[name] = has(name, mode, blob)
	}
	return got
}
