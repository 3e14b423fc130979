package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/github"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

const canary = "ghp_canary0123456789abcdef"

// sandbox is a directory that plays the sandbox: programs run there with an
// environment of their own.
type sandbox struct {
	root string
	// instead, if set, is run instead of a program whose words contain its
	// key.
	instead map[string][]string
	knows   bool // the credential, which the test gave it
}

func newSandbox(t *testing.T) *sandbox {
	t.Helper()
	p := &sandbox{root: t.TempDir()}
	t.Cleanup(func() {
		if !p.knows {
			clean(t, p.root)
		}
	})
	return p
}

func (p *sandbox) site() relay.Site { return relay.Site{Sandbox: p, Root: p.root, Link: "repo"} }

func (p *sandbox) Exec(ctx context.Context, c *machine.Command) error {
	argv := c.Argv
	for key, other := range p.instead {
		if strings.Contains(strings.Join(argv, " "), key) {
			argv = other
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout = c.Dir, c.Stdin, c.Stdout
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.root}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	return nil
}

// work is what an agent does: files, and a commit of them.
func (p *sandbox) work(t *testing.T, message string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(p.root, "repo")
	for path, data := range files {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.git(t, dir, "add", "-A")
	p.git(t, dir, "commit", "-qm", message)
}

func (p *sandbox) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Exec(t.Context(), &machine.Command{Argv: append([]string{"git", "-C", dir}, args...), Dir: "/", Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// host is a relay with a project whose remote and GitHub are servers.
type host struct {
	t       *testing.T
	relay   *relay.Relay
	project *relay.Project
	server  *relaytest.GitServer
	hub     *relaytest.GitHub
	leaky   bool // the credential is in its quarantine, because the agent wrote it
}

func newHost(t *testing.T) *host {
	t.Helper()
	server, hub := relaytest.NewGitServer(t, canary), relaytest.NewGitHub(t, canary, "org/project")
	url := server.Create(t, "project.git", map[string]string{"README.md": "hello\n", "src/main.go": "package main\n"})
	dir := t.TempDir()
	h := &host{t: t, relay: relay.New(dir), server: server, hub: hub}
	t.Cleanup(func() {
		if !h.leaky {
			clean(t, dir)
		}
		clean(t, server.Dir("project.git"))
	})
	h.relay.Known = [][]byte{[]byte(canary)}
	h.project = &relay.Project{
		Remote: git.Remote{URL: url, Plain: true}, Base: "main", Identity: rewrite.Identity{Name: "Atoll", Email: "atoll@example.com"},
		Credential: github.Token{Source: secret.Literal{Value: secret.New(canary)}},
		Pulls:      &relay.Pulls{Client: &github.Client{Base: hub.URL}, Owner: "org", Repo: "project", Draft: true, Labels: []string{"agent"}},
	}
	return h
}

func (h *host) prepare(p *sandbox, key branch.Key) *relay.Work {
	h.t.Helper()
	w, err := h.relay.Prepare(h.t.Context(), h.project, p.site(), key)
	if err != nil {
		h.t.Fatal(err)
	}
	return w
}

func (h *host) take(p *sandbox, w *relay.Work, run string) *relay.Record {
	h.t.Helper()
	record, err := h.relay.Take(h.t.Context(), h.project, p.site(), &relay.TakeRequest{Run: run, Work: *w, About: relay.About{Title: "Do it", Model: "test/model", Cost: "$0.01"}})
	if err != nil {
		h.t.Fatal(err)
	}
	return record
}

func (h *host) send(record *relay.Record) {
	h.t.Helper()
	if err := h.relay.Send(h.t.Context(), h.project, record); err != nil {
		h.t.Fatal(err)
	}
}

func TestOneRun(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "task.0022")
	p.work(t, "feat: greet\n\nCloses #1", map[string]string{"greet.txt": "hi\n"})
	record := h.take(p, w, "run-1")
	h.send(record)
	if record.Step != relay.Done || record.PullURL == "" || len(record.Report.Findings) != 0 {
		t.Fatalf("%+v", record)
	}
	if got := h.server.Git(t, "project.git", "log", "--format=%an %cn %s", "main..sandbox/task.0022"); got != "Atoll Atoll feat: greet" {
		t.Errorf("the branch has %s", got)
	}
	if got := h.server.Git(t, "project.git", "show", "sandbox/task.0022:greet.txt"); got != "hi" {
		t.Errorf("the file has %q", got)
	}
	pulls := h.hub.Pulls()
	if len(pulls) != 1 || pulls[0].Head != "sandbox/task.0022" || !pulls[0].Draft || !strings.Contains(pulls[0].Body, "run-1") {
		t.Errorf("%+v", pulls)
	}
}

func TestNoCommits(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	record := h.take(p, h.prepare(p, "idle"), "run-1")
	h.send(record)
	if record.Step != relay.Nothing || len(h.hub.Requests()) != 0 || strings.Contains(h.server.Git(t, "project.git", "branch"), "sandbox") {
		t.Errorf("%+v", record)
	}
}

// Two agents after each other on one line of work, and one on another at the
// same time: two branches, two pull requests, nothing mixed.
func TestLinesOfWork(t *testing.T) {
	h := newHost(t)
	var all sync.WaitGroup
	all.Go(func() {
		for i, name := range []string{"a", "b"} {
			p := newSandbox(t)
			w := h.prepare(p, "shared")
			p.work(t, "add "+name, map[string]string{name: name})
			h.send(h.take(p, w, fmt.Sprintf("run-shared-%d", i)))
		}
	})
	all.Go(func() {
		p := newSandbox(t)
		w := h.prepare(p, "other")
		p.work(t, "add c", map[string]string{"c": "c"})
		h.send(h.take(p, w, "run-other"))
	})
	all.Wait()
	if got := h.server.Git(t, "project.git", "log", "--reverse", "--format=%s", "main..sandbox/shared"); got != "add a\nadd b" {
		t.Errorf("shared has %q", got)
	}
	if got := h.server.Git(t, "project.git", "log", "--format=%s", "main..sandbox/other"); got != "add c" {
		t.Errorf("other has %q", got)
	}
	if pulls := h.hub.Pulls(); len(pulls) != 2 {
		t.Errorf("%+v", pulls)
	}
}

// A sandbox that outlives its runs: the branch is put where the remote is, and
// nothing that was there is lost.
func TestSandboxThatStays(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "long")
	p.work(t, "one", map[string]string{"one": "1"})
	h.send(h.take(p, w, "run-1"))
	if again := h.prepare(p, "long"); len(again.Notes) != 0 || again.Seen == "" {
		t.Errorf("%+v", again)
	}
	p.work(t, "never taken", map[string]string{"two": "2"})
	if err := os.WriteFile(filepath.Join(p.root, "repo", "dirty"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	w = h.prepare(p, "long")
	if len(w.Notes) != 2 || p.git(t, w.Dir, "stash", "list") == "" || p.git(t, w.Dir, "for-each-ref", "refs/atoll/left") == "" {
		t.Errorf("%+v", w)
	}
	if got := p.git(t, w.Dir, "status", "--porcelain"); got != "" {
		t.Errorf("the worktree is not clean: %s", got)
	}
	p.work(t, "three", map[string]string{"three": "3"})
	h.send(h.take(p, w, "run-2"))
	if got := h.server.Git(t, "project.git", "log", "--reverse", "--format=%s", "main..sandbox/long"); got != "one\nthree" {
		t.Errorf("the branch has %q", got)
	}
}

func TestBlockedIsNeverPushed(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "evil")
	p.work(t, "x", map[string]string{".github/workflows/x.yml": "on: push\n"})
	record := h.take(p, w, "run-1")
	h.send(record)
	if record.Step != relay.Blocked || record.Head != "" || strings.Contains(h.server.Git(t, "project.git", "branch"), "evil") {
		t.Errorf("%+v", record)
	}
	if err := h.relay.Approve(record, "me"); err == nil {
		t.Error("what is blocked was approved")
	}
}

func TestApproval(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "rules")
	p.work(t, "x", map[string]string{"AGENTS.md": "be nice\n"})
	record := h.take(p, w, "run-1")
	h.send(record)
	if record.Step != relay.Waiting || strings.Contains(h.server.Git(t, "project.git", "branch"), "rules") {
		t.Fatalf("%+v", record)
	}
	if err := h.relay.Approve(record, "anna"); err != nil {
		t.Fatal(err)
	}
	h.send(record)
	if record.Step != relay.Done || !strings.Contains(h.hub.Pulls()[0].Body, "anna") {
		t.Errorf("%+v", record)
	}
}

// The credential of the host, written by the agent who should not know it.
func TestSecretOfTheHostIsNotPushed(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	h.leaky, p.knows = true, true
	w := h.prepare(p, "leak")
	p.work(t, "x", map[string]string{"notes.txt": "it is " + canary + "\n"})
	if record := h.take(p, w, "run-1"); record.Report.Verdict() != contentpolicy.Blocked || strings.Contains(fmt.Sprint(record.Report.Findings), canary) {
		t.Errorf("%v", record.Report.Findings)
	}
}

// Taking the same run twice, or sending it twice, does it once.
func TestAgainIsNothing(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "once")
	p.work(t, "x", map[string]string{"x": "x"})
	h.send(h.take(p, w, "run-1"))
	pushes := len(h.server.Requests())
	record := h.take(p, w, "run-1")
	h.send(record)
	if record.Step != relay.Done || len(h.server.Requests()) != pushes || len(h.hub.Pulls()) != 1 || h.hub.Pulls()[0].Updates != 0 {
		t.Errorf("%+v, %d requests", record, len(h.server.Requests())-pushes)
	}
}

// A crash after the push and before its note, and one before the pull request.
func TestInterrupted(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "crash")
	p.work(t, "x", map[string]string{"x": "x"})
	record := h.take(p, w, "run-1")
	early := *record
	h.send(record)
	head := h.server.Git(t, "project.git", "rev-parse", "sandbox/crash")
	h.send(&early) // knows nothing of what happened
	if early.Step != relay.Done || h.server.Git(t, "project.git", "rev-parse", "sandbox/crash") != head || len(h.hub.Pulls()) != 1 {
		t.Errorf("%+v, %+v", early, h.hub.Pulls())
	}
}

func TestSomebodyElsePushed(t *testing.T) {
	h, p, q := newHost(t), newSandbox(t), newSandbox(t)
	first, second := h.prepare(p, "race"), h.prepare(q, "race")
	p.work(t, "p", map[string]string{"p": "p"})
	q.work(t, "q", map[string]string{"q": "q"})
	h.send(h.take(p, first, "run-1"))
	late := h.take(q, second, "run-2")
	if err := h.relay.Send(t.Context(), h.project, late); !errors.Is(err, git.ErrStale) || late.Step != relay.Judged {
		t.Errorf("%v, %+v", err, late)
	}
	if got := h.server.Git(t, "project.git", "log", "--format=%s", "main..sandbox/race"); got != "p" {
		t.Errorf("the branch has %q", got)
	}
}

// Answers of a sandbox whose git is the attacker's.
func TestHostileSandbox(t *testing.T) {
	for _, test := range []struct {
		name    string
		instead []string
	}{
		{"floods", []string{"head", "-c", "10000000000", "/dev/zero"}},
		{"floods after a header", []string{"sh", "-c", `printf '# v2 git bundle\n%040d a\n\nPACK' 1; head -c 10000000000 /dev/zero`}},
		{"says nothing", []string{"true"}},
		{"fails", []string{"false"}},
		{"says nonsense", []string{"echo", "hello"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, p := newHost(t), newSandbox(t)
			h.project.MaxBytes = 1 << 20
			w := h.prepare(p, "x")
			p.work(t, "x", map[string]string{"x": "x"})
			p.instead = map[string][]string{"bundle create": test.instead}
			record, err := h.relay.Take(t.Context(), h.project, p.site(), &relay.TakeRequest{Run: "run-1", Work: *w})
			if err == nil {
				t.Errorf("taken: %+v", record)
			}
			if records, err := h.relay.List(); err != nil || len(records) != 0 {
				t.Errorf("left behind: %v, %v", records, err)
			}
		})
	}
}

func TestCollidingBranches(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "a")
	p.work(t, "x", map[string]string{"x": "x"})
	h.send(h.take(p, w, "run-1"))
	if _, err := h.relay.Prepare(t.Context(), h.project, newSandbox(t).site(), "a/b"); err == nil || !strings.Contains(err.Error(), "sandbox/a") {
		t.Errorf("%v", err)
	}
}

func TestBadRunIDs(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	for _, id := range []string{"", "..", ".x", "a/b", strings.Repeat("a", 200)} {
		if _, err := h.relay.Take(t.Context(), h.project, p.site(), &relay.TakeRequest{Run: id}); err == nil {
			t.Errorf("%q was taken", id)
		}
	}
}

// The credential is nowhere but in the answer to the server that asked for it.
func TestCredentialIsNowhere(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	t.Setenv("GITHUB_TOKEN", canary)
	dir := t.TempDir()
	h.relay = relay.New(dir)
	w := h.prepare(p, "clean")
	p.work(t, "x", map[string]string{"x": "x"})
	h.send(h.take(p, w, "run-1"))
	for _, root := range []string{p.root, dir, h.server.Dir("project.git")} {
		if out, err := exec.CommandContext(t.Context(), "grep", "-rlF", canary, root).Output(); err == nil {
			t.Errorf("found in %s", out)
		}
	}
}

// More changes left behind than a sandbox may tell of are changes all the same.
func TestVeryDirtySandbox(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "dirty")
	for i := range 1000 {
		if err := os.WriteFile(filepath.Join(w.Dir, fmt.Sprintf("%0100d", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if again := h.prepare(p, "dirty"); len(again.Notes) != 1 || p.git(t, w.Dir, "status", "--porcelain") != "" {
		t.Errorf("%+v", again)
	}
}

// The host renders what the agent changed from commits that it wrote itself: for
// the record, and for the reader of the pull request, on whom nothing acts.
func TestPatch(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "work")
	p.work(t, "add it\n\n@boss fixes #12\n\ndiff --git a/evil b/evil", map[string]string{"new.md": "```\n@boss </details>\n<img src=https://evil.example.com>\n"})
	record := h.take(p, w, "run-1")
	h.send(record)
	text, err := h.relay.LoadPatch(record)
	if err != nil || record.Patch.Bytes != len(text) || !strings.Contains(string(text), "+@boss </details>") || !strings.Contains(string(text), "From: Atoll") || strings.Contains(string(text), "@boss fixes") {
		t.Errorf("%+v, %v: %s", record.Patch, err, text)
	}
	body := h.hub.Pulls()[0].Body
	_, block, ok := strings.Cut(body, "\n````diff\n")
	if !ok || !strings.Contains(block, "+```\n") || !strings.HasSuffix(block, "\n````\n</details>\n\n<!-- atoll:end -->") || strings.Count(block, "\n````\n") != 1 {
		t.Errorf("the body is\n%s", body)
	}
}

// One that is large is not shown, but named.
func TestLargePatch(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "work")
	p.work(t, "add it", map[string]string{"new": strings.Repeat("many lines\n", 2000)})
	record := h.take(p, w, "run-1")
	h.send(record)
	text, err := h.relay.LoadPatch(record)
	if err != nil || len(text) < 20_000 || record.Patch.Cut {
		t.Errorf("%+v, %v, %d bytes", record.Patch, err, len(text))
	}
	if body := h.hub.Pulls()[0].Body; len(body) > 4<<10 || !strings.Contains(body, "atoll relay show run-1 --patch") {
		t.Errorf("the body is %.3000s", body)
	}
}

// What is blocked is rendered for nobody.
func TestBlockedHasNoPatch(t *testing.T) {
	h, p := newHost(t), newSandbox(t)
	w := h.prepare(p, "work")
	p.work(t, "x", map[string]string{".github/workflows/x.yml": "on: push\n"})
	record := h.take(p, w, "run-1")
	if _, err := h.relay.LoadPatch(record); err == nil || record.Patch != nil {
		t.Errorf("%+v, %v", record.Patch, err)
	}
}

// A directory is kept a copy of the remote, and holds no credential.
//
// Seen to fail with a Publish that fetches the base alone.
func TestPublish(t *testing.T) {
	h, dir := newHost(t), filepath.Join(t.TempDir(), "repo")
	for _, name := range []string{"one", "two"} {
		h.server.Git(t, "project.git", "branch", name, "main")
		head, err := h.relay.Publish(t.Context(), h.project, dir)
		if err != nil || head != h.server.Git(t, "project.git", "rev-parse", "main") {
			t.Fatalf("%q, %v", head, err)
		}
		copied := filepath.Join(t.TempDir(), "copy")
		if out, err := exec.CommandContext(t.Context(), "git", "clone", "-q", dir, copied).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if text, err := os.ReadFile(filepath.Join(copied, "README.md")); err != nil || string(text) != "hello\n" {
			t.Errorf("%q, %v", text, err)
		}
		if out, err := exec.CommandContext(t.Context(), "git", "-C", copied, "rev-parse", "origin/"+name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	clean(t, dir)
	if _, err := h.relay.Publish(t.Context(), h.project, filepath.Dir(dir)); err == nil {
		t.Error("a directory with other things was taken")
	}
}
