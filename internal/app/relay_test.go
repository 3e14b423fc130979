package app_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/relay/deliver"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

// relayToken is the credential of these tests: it is on the host all the time
// and must be nowhere else.
const relayToken = "ghp_canary0123456789abcdefghij"

// relayStage is an installation whose commits go to a git server and a GitHub.
type relayStage struct {
	*site
	server *relaytest.GitServer
	hub    *relaytest.GitHub
	app    *app.App
	relays *deliver.Relays
}

func newRelayStage(t *testing.T) *relayStage {
	t.Helper()
	s := &relayStage{site: linuxSite(t), server: relaytest.NewGitServer(t, relayToken), hub: relaytest.NewGitHub(t, relayToken, "org/project")}
	s.env["GITHUB_TOKEN"] = relayToken
	t.Setenv("GITHUB_TOKEN", relayToken) // in our own environment too: nothing may inherit it
	t.Cleanup(func() { s.searchFor(relayToken, s.state, s.server.Dir("org/project")) })
	s.set("agents.defaults.sandbox.scope", "session")
	s.mkdir(s.server.Dir("org"))
	s.set("relay.repository", s.server.Create(t, "org/project", map[string]string{"README.md": "hello\n", "src/main.go": "package main\n"}))
	s.set("relay.allowHTTP", true)
	s.set("relay.api", s.hub.URL)
	s.app = s.open()
	relays, err := deliver.OpenRelays(s.app.Settings)
	if err != nil {
		t.Fatal(err)
	}
	s.relays = relays
	return s
}

// searchFor reports files that hold a credential: logs, databases, mirrors, what is
// left of sandboxes, the remote.
func (s *relayStage) searchFor(text string, roots ...string) {
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if bytes.Contains(data, []byte(text)) {
				s.t.Errorf("the credential is in %s", path)
			}
			if info, _ := e.Info(); errors.Is(err, fs.ErrPermission) && info != nil && info.Mode().Perm()&0o444 == 0 {
				return nil // the guest's program, which may only be executed
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // what is removed meanwhile
			s.t.Error(err)
		}
	}
}

func (s *relayStage) project() *relay.Project {
	s.t.Helper()
	p, err := s.relays.Project(deliver.WorkOf{})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// prepare makes a sandbox with the project in it.
func (s *relayStage) prepare(name string, key branch.Key) (*provide.ReadySandbox, *relay.Work) {
	s.t.Helper()
	box := s.provide(s.app, session(name))
	w, err := s.relays.Prepare(s.t.Context(), s.project(), deliver.Site(box), key)
	if err != nil {
		s.t.Fatal(err)
	}
	return box, w
}

const asAgent = "git "

// take takes what was committed, and sends it.
func (s *relayStage) take(box *provide.ReadySandbox, w *relay.Work, run string) *relay.Record {
	s.t.Helper()
	record, err := s.relays.Take(s.t.Context(), s.project(), deliver.Site(box), &relay.TakeRequest{Run: run, Work: *w})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.app.Commits.Send(s.t.Context(), record); err != nil {
		s.t.Fatal(err)
	}
	return record
}

// The commits leave, the credential does not enter: with GITHUB_TOKEN in the
// host's environment there is nothing of it inside, pushing from inside fails,
// and the host pushes all the same.
//
// Seen to fail with a step in Relay.Prepare that writes the remote's address into
// the repository inside.
func TestInvariant_HOST_SIDE_GIT_RELAY(t *testing.T) {
	s := newRelayStage(t)
	box, w := s.prepare("one", "work")
	sh(t, box, "cd /workspace/repo && echo x > new && git add -A && "+asAgent+"commit -qm 'add new'")
	if out := sh(t, box, "cd /workspace/repo && git push "+s.relays.Config.Repository+" HEAD 2>&1 || echo refused"); !strings.Contains(out, "refused") {
		t.Errorf("pushed from inside: %s", out)
	}
	found := sh(t, box, "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; grep -rs canary /workspace /tmp /etc /run 2>/dev/null; git -C /workspace/repo config --list; true")
	if strings.Contains(found, "canary") || strings.Contains(found, s.server.URL) {
		t.Errorf("inside there is %s", found)
	}
	record := s.take(box, w, "run-1")
	if record.Step != relay.Done || !strings.Contains(s.server.Git(t, "org/project", "log", "--format=%an %s", "main..sandbox/work"), "Atoll add new") {
		t.Errorf("%+v", record)
	}
}

// GITHUB_TOKEN on the host is all that is needed to push and to open a pull
// request.
//
// Seen to fail with DefaultRelayToken = "OTHER".
func TestInvariant_ENV_CREDENTIALS_FIRST(t *testing.T) {
	s := newRelayStage(t)
	box, w := s.prepare("one", "work")
	sh(t, box, "cd /workspace/repo && echo x > new && git add -A && "+asAgent+"commit -qm 'add new'")
	record := s.take(box, w, "run-1")
	if pulls := s.hub.Pulls(); len(pulls) != 1 || pulls[0].Head != "sandbox/work" || record.PullURL == "" {
		t.Errorf("%+v, %+v", record, pulls)
	}
}

// A branch belongs to a line of work: two runs add to one branch and one pull
// request, and another line of work has its own.
//
// Seen to fail with a Wish.Key that does not compare with the run.
func TestInvariant_BRANCH_KEY_IDENTITY(t *testing.T) {
	s := newRelayStage(t)
	for _, run := range []struct{ id, key, file string }{{"run-1", "task.0022", "a"}, {"run-2", "task.0022", "b"}, {"run-3", "task.0023", "c"}} {
		box, w := s.prepare(run.id, branch.Key(run.key))
		sh(t, box, "cd /workspace/repo && echo x > "+run.file+" && git add -A && "+asAgent+"commit -qm 'add "+run.file+"'")
		s.take(box, w, run.id)
	}
	if got := s.server.Git(t, "org/project", "for-each-ref", "--format=%(refname)"); got != "refs/heads/main\nrefs/heads/sandbox/task.0022\nrefs/heads/sandbox/task.0023" {
		t.Errorf("the server has %s", got)
	}
	if got := s.server.Git(t, "org/project", "log", "--reverse", "--format=%s", "main..sandbox/task.0022"); got != "add a\nadd b" {
		t.Errorf("task.0022 has %s", got)
	}
	if pulls := s.hub.Pulls(); len(pulls) != 2 {
		t.Errorf("%+v", pulls)
	}
	if _, err := (&branch.Request{Branch: "run-1", Run: "run-1"}).Key(); err == nil {
		t.Error("the id of a run names a branch")
	}
}

// What an agent can write into its own repository so that git runs a program or
// reads what it should not. All of it is planted, in a real sandbox; the host
// takes the commits, and nothing happens outside.
func TestPlantedConfiguration(t *testing.T) {
	s := newRelayStage(t)
	canary := filepath.Join(s.dir, "executed")
	box, w := s.prepare("one", "work")
	plant := `set -e
cd /workspace/repo
touch="touch ` + canary + `"
for key in core.fsmonitor diff.external gpg.program core.sshCommand core.pager core.editor uploadpack.packObjectsHook filter.x.clean filter.x.smudge diff.x.textconv credential.helper; do
  git config "$key" "$touch"
done
git config log.showSignature true
git config core.hooksPath /workspace/hooks
git config remote.evil.url "ext::$touch"
git config remote.evil.promisor true
git config protocol.ext.allow always
git config extensions.partialClone evil || true
git config format.signatureFile ` + s.dir + `/atoll.json5
git config core.worktree /
mkdir -p /workspace/hooks
for hook in pre-commit post-commit pre-push post-checkout reference-transaction post-index-change; do printf '#!/bin/sh\n%s\n' "$touch" > /workspace/hooks/$hook; chmod +x /workspace/hooks/$hook; done
echo ` + s.state + `/relay > /workspace/.relay.git/objects/info/alternates
git config --unset core.worktree
git config core.fsmonitor false
git config --unset extensions.partialClone || true
printf 'x\n' > new
git -c core.hooksPath=/dev/null add new
` + asAgent + `-c core.hooksPath=/dev/null commit -qm 'diff --git a/evil b/evil
new file mode 100644
--- /dev/null
+++ b/evil
@@ -0,0 +1 @@
+evil'
git config core.fsmonitor "$touch"
`
	sh(t, box, plant)
	record := s.take(box, w, "run-1")
	if _, err := os.Stat(canary); err == nil {
		t.Error("a program was run on the host")
	}
	if record.Step != relay.Done {
		t.Fatalf("%+v", record)
	}
	if got := s.server.Git(t, "org/project", "diff", "--name-only", "main..sandbox/work"); got != "new" {
		t.Errorf("the branch changes %s", got)
	}
}
