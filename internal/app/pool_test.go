package app_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// poolSite is an installation with a sandbox for every session.
func poolSite(t *testing.T) *site {
	t.Helper()
	s := linuxSite(t)
	s.set("agents.defaults.sandbox.scope", "session")
	return s
}

// pooled makes a sandbox for the pool of agent main, and returns its row.
func pooled(t *testing.T, a *app.App) *sandbox.Entry {
	t.Helper()
	p, why, err := a.PlanPool(t.Context(), "main")
	if err != nil || why != "" {
		t.Fatalf("no pool: %q, %v", why, err)
	}
	if err := a.MakePooled(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	row, err := a.Registry.Get(t.Context(), p.Spec.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.RemovePooled(context.WithoutCancel(t.Context()), row); err != nil {
			t.Error(err)
		}
	})
	return row
}

// isGone reports whether a row and its directory are gone.
func isGone(t *testing.T, a *app.App, row *sandbox.Entry) bool {
	t.Helper()
	_, err := a.Registry.Get(t.Context(), row.ContainerName)
	_, dirErr := os.Lstat(row.WorkspaceDir)
	return errors.Is(err, sandbox.ErrNotFound) && errors.Is(dirErr, fs.ErrNotExist)
}

// A new session gets the sandbox that waits, with the behaviour files of its agent; the
// next one does not.
func TestPoolIsClaimed(t *testing.T) {
	t.Parallel()
	s := poolSite(t)
	if err := os.WriteFile(filepath.Join(s.agent, "AGENTS.md"), []byte("be brief\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.open()
	row := pooled(t, a)
	var members []string
	a.Claimed = func(_ *sandbox.Spec, member string) { members = append(members, member) }
	first, second := s.provide(a, session("one")), s.provide(a, session("two"))
	if len(members) != 2 || members[0] != row.ContainerName || members[1] != "" {
		t.Errorf("claimed %q, want %s and nothing", members, row.ContainerName)
	}
	if got := sh(t, first, "cat AGENTS.md; cat /proc/sys/kernel/hostname"); strings.TrimSpace(got) != "be brief\nsandbox" {
		t.Errorf("inside: %q", got)
	}
	if got := sh(t, second, "cat AGENTS.md; cat /proc/sys/kernel/hostname"); strings.TrimSpace(got) != "be brief\n"+second.Name {
		t.Errorf("inside the other: %q", got)
	}
	if !isGone(t, a, row) {
		t.Error("the row or the directory of the pool is left")
	}
}

// What was made with another configuration is not handed out, and goes where no gateway
// runs, with its directory.
func TestPoolIsStale(t *testing.T) {
	t.Parallel()
	s := poolSite(t)
	row := pooled(t, s.open())
	s.set("agents.defaults.sandbox.docker.tmpfs", []string{"/tmp", "/scratch"})
	a := s.open()
	a.Claimed = func(_ *sandbox.Spec, member string) {
		if member != "" {
			t.Errorf("%s was handed out", member)
		}
	}
	s.provide(a, session("one"))
	removed, err := a.Prune(t.Context(), false)
	if err != nil || !isGone(t, a, row) {
		t.Errorf("it is left, %v; removed %v", err, removed)
	}
}

// What a crash left of a pool goes with the next prune: a directory without a row.
func TestPoolLeftovers(t *testing.T) {
	t.Parallel()
	s := poolSite(t)
	a := s.open()
	row := pooled(t, a)
	if err := a.Manager.Remove(t.Context(), row.ContainerName, nil); err != nil { // without its directory
		t.Fatal(err)
	}
	if _, err := a.Prune(t.Context(), false); err != nil || !isGone(t, a, row) {
		t.Errorf("its directory is left, %v", err)
	}
}

// What waits in a pool belongs to no account.
func TestPoolCountsForNoAccount(t *testing.T) {
	t.Parallel()
	s := poolSite(t)
	a := s.open()
	pooled(t, a)
	pooled(t, a)
	who := session("one")
	who.Account, who.MostSandboxes = "acme", 1
	s.provide(a, who)
	if n, err := a.SandboxesOf(t.Context(), "acme"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// What cannot wait is said with its reason.
func TestNoPool(t *testing.T) {
	t.Parallel()
	s := poolSite(t)
	s.set("agents.defaults.sandbox.docker.setupCommand", "true")
	if _, why, err := s.open().PlanPool(t.Context(), "main"); err != nil || !strings.Contains(why, "set-up") {
		t.Errorf("set-up: %q, %v", why, err)
	}
	s.set("agents.defaults.sandbox.docker.setupCommand", "")
	s.set("agents.defaults.sandbox.workspaceAccess", "rw")
	if _, why, err := s.open().PlanPool(t.Context(), "main"); err != nil || !strings.Contains(why, "directory of the host") {
		t.Errorf("rw: %q, %v", why, err)
	}
}
