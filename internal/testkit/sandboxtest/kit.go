package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// patience bounds every single step: a loaded machine is slow, a broken one
// must not hang the suite.
const patience = 60 * time.Second

func fixedRuntime(rt sandbox.Runtime) func(context.Context, string) (sandbox.Runtime, error) {
	return func(context.Context, string) (sandbox.Runtime, error) { return rt, nil }
}

func mustMkdir(t *testing.T, dir string) {
	t.Helper()
	// The sandbox's user may be any: the suite is not about permissions.
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
}

// started creates and starts the sandbox of spec.
func (s *stage) started(spec *sandbox.Spec) sandbox.Instance {
	s.t.Helper()
	inst, err := s.runtime.Create(s.t.Context(), spec)
	if err != nil {
		s.t.Fatalf("create: %v", err)
	}
	if err := inst.Start(s.t.Context()); err != nil {
		s.t.Fatalf("start: %v", err)
	}
	return inst
}

// wire opens a machine on a running instance.
func (s *stage) wire(inst sandbox.Instance) *machine.Machine {
	s.t.Helper()
	m := machine.New(inst.Dial, nil)
	s.t.Cleanup(func() { _ = m.Close() })
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := m.Ping(ctx); err != nil {
		s.t.Fatalf("the guest does not answer: %v", err)
	}
	return m
}

// sh runs a script inside and returns its output; a failure fails the test.
func (s *stage) sh(m *machine.Machine, script string) string {
	s.t.Helper()
	out, res := s.try(m, script)
	if res.ExitCode != 0 {
		s.t.Fatalf("%s: exit code %d: %s", script, res.ExitCode, out)
	}
	return out
}

func (s *stage) try(m *machine.Machine, script string) (string, *machine.Result) {
	s.t.Helper()
	return s.tryUnder(m, "", script)
}

// granted is sh for a command under a grant.
func (s *stage) granted(m *machine.Machine, grant, script string) string {
	s.t.Helper()
	out, res := s.tryUnder(m, grant, script)
	if res.ExitCode != 0 {
		s.t.Fatalf("%s: exit code %d: %s", script, res.ExitCode, out)
	}
	return out
}

func (s *stage) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) tryUnder(m *machine.Machine, grant, script string) (string, *machine.Result) {
	s.t.Helper()
	var out bytes.Buffer
	res, err := m.Exec(s.t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", script}, Stdout: &out, Stderr: &out, Timeout: patience, Grant: grant})
	if err != nil {
		s.t.Fatalf("%s: %v", script, err)
	}
	return strings.TrimSpace(out.String()), res
}

func (s *stage) ensure(m *sandbox.Manager, spec *sandbox.Spec) *sandbox.Handle {
	s.t.Helper()
	h, err := m.Ensure(s.t.Context(), spec)
	if err != nil {
		s.t.Fatalf("ensure: %v", err)
	}
	s.t.Cleanup(h.Release)
	return h
}

// id is the machinery's own id of the sandbox of that name, "" if it is gone.
func (s *stage) id(name string) string {
	s.t.Helper()
	inst, err := s.runtime.Open(s.t.Context(), name)
	if err != nil {
		return ""
	}
	return inst.Seen().ID
}

func (s *stage) workspace(spec *sandbox.Spec, file string) string {
	return filepath.Join(spec.Mounts[0].Source, file)
}

func (s *stage) wantGone(name string) {
	s.t.Helper()
	if id := s.id(name); id != "" {
		s.t.Errorf("sandbox %s is still there (%s)", name, id)
	}
}

// wantRefused checks that a spec has gaps in these fields, each with a remedy,
// and that nothing is made of it.
func (s *stage) wantRefused(spec *sandbox.Spec, fields ...string) {
	s.t.Helper()
	remedies := map[string]string{}
	for _, gap := range s.runtime.Check(s.t.Context(), spec) {
		remedies[gap.Field] = gap.Remedy
	}
	for _, field := range fields {
		if remedies[field] == "" {
			s.t.Errorf("no gap, or no remedy, for %s: %v", field, remedies)
		}
	}
	if _, err := s.runtime.Create(s.t.Context(), spec); !errors.Is(err, sandbox.ErrUnsupported) {
		s.t.Errorf("create: %v, want ErrUnsupported", err)
	}
	s.wantGone(spec.Name)
}
