package linux_test

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// What a sandbox uses is counted by its group, of the processor from its processes where
// no group counts it; after its end, and after it was started anew, that is known too.
func TestUsage(t *testing.T) {
	t.Parallel()
	grouptest.Need(t)
	l := newSite(t)
	i := l.start(func(s *sandbox.Spec) { s.Limits.Memory, s.Limits.Pids = 64<<20, 64 })
	l.sh(i, "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done")
	measure := func() (sandbox.Usage, error) { return i.(sandbox.Measurer).Usage(t.Context()) }
	used, err := measure()
	if err != nil || used.CPU == 0 || used.Memory == 0 || used.Memory > 64<<20 || used.Pids == 0 || used.Pids > 64 {
		t.Errorf("%+v, %v", used, err)
	}
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := measure(); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("%v after its end", err)
	}
	if err := i.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used, err = measure(); err != nil || used.Memory == 0 || used.Pids == 0 {
		t.Errorf("%+v, %v after it was started anew", used, err)
	}
}
