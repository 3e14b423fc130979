package app_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
)

// A fork that is killed when its files are copied leaves a copy of a workspace
// that belongs to nobody. The next who repairs takes it away, and that one only.
func TestForkThatWasKilledLeavesNoWorkspace(t *testing.T) {
	s := newHostSite(t)
	s.set("agents.defaults.sandbox.docker.readOnlyRoot", false)
	a := s.open()
	got := s.provide(a, session("source"))
	sh(t, got, "echo mine >/workspace/note")
	got.Release()
	source, target := got.Name, session("target").SessionKey
	defer s.discardAll()
	killFork(t, a, source, target)
	a.Close()

	a = s.open()
	defer a.Close()
	if _, err := a.Prune(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	forked, err := a.Fork(t.Context(), source, target, true)
	if err != nil {
		t.Fatal("the same fork again:", err)
	}
	note := filepath.Join(forked.Workspace, "note")
	if text, err := os.ReadFile(note); string(text) != "mine\n" {
		t.Errorf("the fork holds %q, %v", text, err)
	}

	// Files that a session has from before are never taken for a fork's.
	if err := a.Manager.ForceRemove(t.Context(), forked.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Fork(t.Context(), source, target, true); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a fork over files: %v", err)
	}
	if _, err := a.Prune(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
}

// killFork ends a fork as a kill would: nothing that comes later is done.
func killFork(t *testing.T, a *app.App, source, target string) {
	t.Helper()
	a.Manager.Checkpoint = func(step string) {
		if step == "after wire" {
			panic("killed")
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("the fork came to its end")
		}
		a.Manager.Checkpoint = func(string) {}
	}()
	_, err := a.Fork(t.Context(), source, target, true)
	t.Errorf("fork: %v", err)
}

// discardAll removes the sandboxes of the site.
func (s *site) discardAll() {
	a := s.open()
	defer a.Close()
	for _, row := range s.rows(a) {
		if err := a.Manager.ForceRemove(s.t.Context(), row.ContainerName); err != nil {
			s.t.Error(err)
		}
	}
}

// newHostSite is a site whose sandboxes need no engine and no image.
func newHostSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.docker.image", "host")
	s.mkdir(s.state)
	return s
}
