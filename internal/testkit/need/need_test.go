package need_test

import (
	"errors"
	"flag"
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

// chosen sets -run for a test.
func chosen(t *testing.T, run string) {
	t.Helper()
	f := flag.Lookup("test.run").Value
	before := f.String()
	t.Cleanup(func() { _ = f.Set(before) })
	if err := f.Set(run); err != nil {
		t.Fatal(err)
	}
}

func TestTimeAndRounds(t *testing.T) {
	for name, c := range map[string]struct {
		all, run string
		whole    bool
	}{
		"go test ./...": {},
		"make test":     {all: "1", whole: true},
		"go test -run":  {run: "TestTime", whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(need.All, c.all)
			chosen(t, c.run)
			r := ends(func(tb testing.TB) { need.Time(tb, "it downloads") })
			if r.failed != "" || (r.skipped == "") != c.whole || !c.whole && !strings.Contains(r.skipped, "it downloads: run make test") {
				t.Errorf("%+v", r)
			}
			if got := need.Rounds(2, 50); got != map[bool]int{true: 50, false: 2}[c.whole] {
				t.Errorf("%d rounds", got)
			}
		})
	}
}
