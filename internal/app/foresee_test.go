package app_test

import (
	"os"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/machine"
)

// alone opens the installation for one session of its own.
func (s *site) alone() (*app.App, app.Who) {
	s.t.Helper()
	settings, err := app.Load(app.Options{Getenv: s.getenv, ConfigPath: s.configFile()})
	if err != nil {
		s.t.Fatal(err)
	}
	who, err := settings.Alone(app.Who{})
	if err != nil {
		s.t.Fatal(err)
	}
	a, err := settings.OpenAlone(s.t.Context(), nil, who)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(a.Close)
	return a, who
}

func newHostSite(t *testing.T) *site {
	t.Helper()
	s := newSite(t)
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.docker.image", "host")
	s.mkdir(s.state)
	return s
}

// The sandbox of a process that makes just one is foreseen while the state is
// opened, and provided as any other; others are not.
func TestForeseen(t *testing.T) {
	t.Parallel()
	s := newHostSite(t)
	a, who := s.alone()
	expected := a.Foreseen()
	if expected == nil {
		t.Fatal("nothing was foreseen")
	}
	other := s.provide(a, session("other"))
	discardLater(t, a, other)
	if other.Plan == expected {
		t.Error("what was foreseen is another's")
	}
	own := s.provide(a, who)
	discardLater(t, a, own)
	if own.Plan != expected || a.Foreseen() != nil {
		t.Errorf("planned again: %p, foreseen was %p", own.Plan, expected)
	}
	var out strings.Builder
	if _, err := own.Machine.Exec(t.Context(), &machine.Command{Shell: "echo alive", Stdout: &out}); err != nil || out.String() != "alive\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}

// What would be refused, or needs an engine, is not foreseen: Provide says what
// there is to say.
func TestNotForeseen(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*site){
		"an engine": func(s *site) { s.set("agents.defaults.sandbox.backend", "docker") },
		"a refusal": func(s *site) { s.set("agents.defaults.sandbox.docker.binds", []string{"/etc:/etc:ro"}) },
		"no state":  func(s *site) { _ = os.Remove(s.state) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHostSite(t)
			prepare(s)
			if a, _ := s.alone(); a.Foreseen() != nil {
				t.Error("foreseen")
			}
		})
	}
}

// What was foreseen is let go of once: by the sandbox that needed it, or when the
// installation is left.
func TestForeseenIsLetGo(t *testing.T) {
	t.Parallel()
	for name, provide := range map[string]bool{"provided": true, "not provided": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHostSite(t)
			a, who := s.alone()
			drops := 0
			a.OnDrop(func() { drops++ })
			if provide {
				discardLater(t, a, s.provide(a, who))
			} else {
				a.Leave()
			}
			if drops != 1 {
				t.Errorf("let go %d times", drops)
			}
		})
	}
}
