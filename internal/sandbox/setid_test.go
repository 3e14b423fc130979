package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A directory that holds a set-user-ID program which the sandbox could change is
// not mounted writable, and nothing is left of the attempt.
func TestSetIDProgramsAreNotMountedWritable(t *testing.T) {
	y := newYard(t)
	m := y.manager()
	dir := t.TempDir()
	program := filepath.Join(dir, "deep", "su")
	if err := errors.Join(os.Mkdir(filepath.Dir(program), 0o755), os.WriteFile(program, nil, 0o755), os.Chmod(program, 0o777|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	spec := y.spec("lending")
	spec.Mounts = append(spec.Mounts, sandbox.Mount{Source: dir, Target: "/data", Kind: sandbox.MountBind})
	_, err := m.Ensure(t.Context(), spec)
	if !errors.Is(err, sandbox.ErrDenied) || !strings.Contains(err.Error(), program) || !strings.Contains(errhint.Of(err), "chmod ug-s") {
		t.Fatalf("%v (%s)", err, errhint.Of(err))
	}
	if _, err := m.Registry.Get(t.Context(), "lending"); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("a row is left: %v", err)
	}
	if err := m.Make(t.Context(), spec); !errors.Is(err, sandbox.ErrDenied) {
		t.Errorf("made by hand: %v", err)
	}
	if err := os.Chmod(program, 0o777); err != nil {
		t.Fatal(err)
	}
	y.ensure(m, spec).Release()
}
