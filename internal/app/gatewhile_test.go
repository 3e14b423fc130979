package app_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// A gate works while the sandbox is pruned, made anew and forked: each of them does its
// work, waits or refuses, and nothing that the agent wrote is lost.
func TestGateWhileTheSandboxGoes(t *testing.T) {
	t.Parallel()
	for _, kind := range []overlay.Kind{overlay.Copy, overlay.Kernel} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := linuxSite(t)
			s.set("agents.defaults.sandbox.workspaceAccess", "overlay")
			s.set("agents.defaults.sandbox.overlay.kind", string(kind))
			s.set("agents.defaults.sandbox.prune", map[string]any{"idleHours": 1, "maxAgeDays": 0})
			s.write(filepath.Join(s.agent, "README.md"), "begun\n")
			(&goingSite{site: s, app: s.open()}).run(t)
		})
	}
}

// goingSite is an installation whose sandbox goes again and again.
type goingSite struct {
	*site
	app   *app.App
	ahead atomic.Int64 // how far its clock is ahead
	over  atomic.Bool  // the agent has written everything
}

func (s *goingSite) run(t *testing.T) {
	t.Helper()
	const rounds = 5
	s.app.Manager.Now = func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	var work sync.WaitGroup
	work.Go(func() { s.until(t, s.approve) })
	work.Go(func() { s.until(t, s.takeAway) })
	for round := range rounds {
		s.writeInside(t, round)
	}
	s.over.Store(true)
	work.Wait()
	if err := s.approve(t); err != nil {
		t.Error(err)
	}
	for round := range rounds {
		if text, err := os.ReadFile(filepath.Join(s.agent, fmt.Sprint("f", round))); err != nil || string(text) != fmt.Sprintln(round) {
			t.Errorf("what the agent wrote in round %d: %q, %v", round, text, err)
		}
	}
	if all, err := s.app.Sync.Trees(t.Context(), &api.SyncSubject{}); err != nil || len(all.Trees[0].Entries) > 0 {
		t.Errorf("left: %+v, %v", all, err)
	}
}

// until repeats what may be refused because the sandbox is in use.
func (s *goingSite) until(t *testing.T, do func(*testing.T) error) {
	t.Helper()
	for !s.over.Load() {
		if err := do(t); err != nil && !errors.Is(err, sandbox.ErrBusy) && !errors.Is(err, overlay.ErrNone) {
			t.Error(err)
		}
	}
}

// writeInside has the agent write a file, in a sandbox that is made for it.
func (s *goingSite) writeInside(t *testing.T, round int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		box, err := s.app.Provide(t.Context(), provide.Subject{}, provide.Options{})
		if errors.Is(err, sandbox.ErrBusy) {
			continue
		} else if err != nil {
			t.Error(err)
			return
		}
		sh(t, box, fmt.Sprintf("cat README.md; echo %d >f%d", round, round))
		box.Release()
		return
	}
	t.Errorf("round %d: the sandbox was busy all the time", round)
}

// approve approves everything that passes, as it was shown.
func (s *goingSite) approve(t *testing.T) error {
	t.Helper()
	all, err := s.app.Sync.Trees(t.Context(), &api.SyncSubject{})
	if err != nil {
		return err
	}
	var choices []api.SyncChoice
	for _, e := range all.Trees[0].Entries {
		choices = append(choices, api.SyncChoice{Path: e.Path, SHA256: e.SHA256})
	}
	if len(choices) == 0 {
		return nil
	}
	_, err = s.app.Sync.Approve(t.Context(), &api.SyncApproval{Choices: choices}, "me")
	if errors.Is(err, gate.ErrOtherHash) { // it was being written when it was shown
		return nil
	}
	return err
}

// takeAway tries to fork the sandbox, and prunes it or makes it anew.
func (s *goingSite) takeAway(t *testing.T) error {
	t.Helper()
	s.ahead.Add(int64(2 * time.Hour))
	for _, entry := range s.rows(s.app) {
		if _, err := s.app.Fork(t.Context(), entry.ContainerName, "", true); !errors.Is(err, sandbox.ErrUnsupported) && !errors.Is(err, sandbox.ErrNotFound) {
			return fmt.Errorf("fork: %w", err)
		}
		if s.ahead.Load()%int64(4*time.Hour) == 0 {
			if done := s.app.Recreate(t.Context(), entry, true); done.Err != nil && !errors.Is(done.Err, sandbox.ErrNotFound) {
				return done.Err
			}
		}
	}
	removed, err := s.app.Prune(t.Context(), true)
	for _, r := range removed {
		if r.Err != nil && !errors.Is(r.Err, sandbox.ErrBusy) {
			return r.Err
		}
	}
	return err
}
