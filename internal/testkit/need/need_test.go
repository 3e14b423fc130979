package need_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// recorder stands in for a test and notes how it ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper()           {}
func (r *recorder) Skip(args ...any)  { r.skipped = fmt.Sprint(args...); runtime.Goexit() }
func (r *recorder) Fatal(args ...any) { r.failed = fmt.Sprint(args...); runtime.Goexit() }

// ends runs f as a test of its own would run and returns how it ended.
func ends(f func(testing.TB)) *recorder {
	r, done := &recorder{}, make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
	return r
}

func TestMissingSkipsHere(t *testing.T) {
	t.Setenv(need.All, "")
	r := ends(func(tb testing.TB) { need.Missing(tb, errors.New("no engine")) })
	if r.skipped != "no engine" || r.failed != "" {
		t.Errorf("%+v", r)
	}
}

func TestMissingFailsWhereAllIsRun(t *testing.T) {
	t.Setenv(need.All, "1")
	r := ends(func(tb testing.TB) { need.Missing(tb, errors.New("no engine")) })
	if r.failed != "no engine" || r.skipped != "" {
		t.Errorf("%+v", r)
	}
}

func TestProgram(t *testing.T) {
	t.Setenv(need.All, "")
	if r := ends(func(tb testing.TB) { need.Program(tb, "go", "golang") }); *r != (recorder{}) {
		t.Errorf("one that is installed: %+v", r)
	}
	r := ends(func(tb testing.TB) { need.Program(tb, "atoll-no-such-program", "no-package") })
	if !strings.Contains(r.skipped, "atoll-no-such-program, of the package no-package") {
		t.Errorf("one that is missing: %+v", r)
	}
}

func TestRoot(t *testing.T) {
	t.Setenv(need.All, "")
	r := ends(func(tb testing.TB) { need.Root(tb, "it mounts") })
	if wants := os.Geteuid() != 0; wants != strings.Contains(r.skipped, "needs root: it mounts") {
		t.Errorf("%+v", r)
	}
}
