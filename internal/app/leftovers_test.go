package app_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// leave makes the copy of a session and no sandbox, as a killed process does.
func (s *site) leave(a *app.App, who provide.Subject) workspace.Layout {
	s.t.Helper()
	p, err := a.Plan(who)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := workspace.Prepare(s.t.Context(), p.Layout, workspace.Options{}); err != nil {
		s.t.Fatal(err)
	}
	s.write(filepath.Join(p.Layout.SandboxDir, "made"), "x")
	return p.Layout
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// Copies without a sandbox go with prune --workspaces and not before. What is no
// copy of ours stays in any case.
func TestPruneReachesCopiesWithoutASandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	left := s.leave(a, session("left"))
	person := filepath.Join(left.Root, "backup-20261116", "file")
	s.write(person, "by a person")
	for _, workspaces := range []bool{false, true} {
		removed, err := a.Prune(t.Context(), workspaces)
		if err != nil || len(removed) == 1 != workspaces {
			t.Fatalf("removed %+v, %v", removed, err)
		}
		if exists(t, left.SandboxDir) == workspaces || !exists(t, person) {
			t.Errorf("workspaces %v: the copy is there: %v; the person's file: %v", workspaces, !workspaces, exists(t, person))
		}
	}
}

// A copy whose sandbox is just being made is not without a sandbox.
func TestPruneLeavesCopiesThatAreBeingPrepared(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	who, err := a.Alone(provide.Subject{})
	if err != nil {
		t.Fatal(err)
	}
	left := s.leave(a, who)
	release, err := a.HoldCopy(t.Context(), left.SandboxDir)
	if err != nil {
		t.Fatal(err)
	}
	other := s.open()
	if removed, err := other.Prune(t.Context(), true); err != nil || len(removed) != 0 || !exists(t, left.SandboxDir) {
		t.Errorf("removed %+v, %v", removed, err)
	}
	release()
	if removed, err := other.Prune(t.Context(), false); err != nil || len(removed) != 1 || exists(t, left.SandboxDir) {
		t.Errorf("a temporary copy that its maker left: %+v, %v", removed, err)
	}
}

// A command that was to remove its sandbox and was killed: prune removes both.
func TestPruneRemovesTemporarySandboxes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	who, err := a.Alone(provide.Subject{})
	if err != nil {
		t.Fatal(err)
	}
	got := s.provide(a, who)
	if removed, err := a.Prune(t.Context(), true); err != nil || len(removed) != 0 {
		t.Errorf("while it is used: %+v, %v", removed, err)
	}
	got.Release()
	if removed, err := a.Prune(t.Context(), false); err != nil || len(removed) != 1 || removed[0].Err != nil || exists(t, got.Plan.Layout.SandboxDir) {
		t.Errorf("when it is left: %+v, %v", removed, err)
	}
	if _, err := a.Manager.Registry.Get(t.Context(), got.Name); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("its row: %v", err)
	}
}

// Recreate brings a copy up to date whose sandbox is gone, and wipes it if asked.
func TestRecreateReachesCopiesWithoutASandbox(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write(filepath.Join(s.agent, "SOUL.md"), "old")
	a := s.open()
	left := s.leave(a, session("left"))
	if chosen, err := a.Select(t.Context(), provide.Selector{All: true}); err != nil || len(chosen) != 0 {
		t.Errorf("an up-to-date copy is selected: %+v, %v", chosen, err)
	}
	s.write(filepath.Join(s.agent, "SOUL.md"), "new")
	if done := s.recreateOne(a, provide.Selector{Session: "agent:main:left"}); done.Report.Discarded || len(done.Report.Moved) > 0 {
		t.Errorf("%+v", done.Report)
	}
	if text, err := os.ReadFile(filepath.Join(left.SandboxDir, "SOUL.md")); string(text) != "new" || err != nil {
		t.Errorf("SOUL.md: %q, %v", text, err)
	}
	if done := s.recreateOne(a, provide.Selector{Agent: "main", Discard: true}); !done.Report.Discarded || exists(t, left.SandboxDir) {
		t.Errorf("%+v", done.Report)
	}
}

func (s *site) recreateOne(a *app.App, sel provide.Selector) provide.Recreated {
	s.t.Helper()
	chosen, err := a.Select(s.t.Context(), sel)
	if err != nil || len(chosen) != 1 {
		s.t.Fatalf("%+v selects %+v, %v", sel, chosen, err)
	}
	done := a.Recreate(s.t.Context(), chosen[0], sel.Discard)
	if done.Err != nil {
		s.t.Fatal(done.Err)
	}
	return done
}

// The copy of an agent that the file no longer has is wiped all the same.
func TestRecreateDiscardsCopiesOfUnknownAgents(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set("agents.list", []any{map[string]any{"id": "main", "default": true}, map[string]any{"id": "gone"}})
	a := s.open()
	got := s.provide(a, provide.Subject{SessionKey: "agent:gone:x"})
	got.Release()
	a.Close()
	s.set("agents.list", []any{map[string]any{"id": "main"}})
	a = s.open()
	if done := s.recreateOne(a, provide.Selector{Agent: "gone", Discard: true}); !done.Report.Discarded || exists(t, got.Plan.Layout.SandboxDir) {
		t.Errorf("%+v", done.Report)
	}
}
