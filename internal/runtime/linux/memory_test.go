package linux_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// The least memory that may be asked for is enough to run a command; less is
// refused before anything is made, with the number.
func TestLeastMemory(t *testing.T) {
	grouptest.Need(t)
	l := newSite(t)
	const least = 6 << 20
	limit := func(n int64) func(*sandbox.Spec) { return func(s *sandbox.Spec) { s.Limits.Memory = n } }
	if out := l.sh(l.start(limit(least)), "echo enough"); out != "enough" {
		t.Errorf("it says %q", out)
	}
	_, err := l.Create(t.Context(), l.spec(limit(least-1)))
	if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(errhint.Of(err), "the least is 6m") {
		t.Errorf("%v (%s), want it refused with the number", err, errhint.Of(err))
	}
}
