package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// Whatever an installation keeps for itself in its state directory is refused
// as a bind, also by those who open everything that a configuration can open.
func TestOwnFilesAreNeverMounted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	s.provide(a, session("private"))
	entries, err := os.ReadDir(s.state)
	if err != nil {
		t.Fatal(err)
	}
	forOthers := map[string]bool{"sandboxes": true, "workspace": true, "skills": true}
	for _, e := range entries {
		if forOthers[e.Name()] {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			s.set("agents.defaults.sandbox.docker.binds", []string{filepath.Join(s.state, e.Name()) + ":/mnt/x:ro"})
			s.set("agents.defaults.sandbox.docker.dangerouslyAllowExternalBindSources", true)
			s.set("agents.defaults.sandbox.docker.dangerouslyAllowReservedContainerTargets", true)
			p, err := s.open().Plan(session("private"))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Refusal(); !errors.Is(err, sandbox.ErrDenied) {
				t.Errorf("a bind of it: %v", err)
			}
		})
	}
}
