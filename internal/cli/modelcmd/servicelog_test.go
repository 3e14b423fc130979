package modelcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// A service's log says how long something took with a unit.
func TestServiceLogHasReadableDurations(t *testing.T) {
	var out strings.Builder
	(&env{console.NewEnv(&console.Terminal{Out: &out, Err: &out})}).serviceLogger().Info("done", "took", 1500*time.Millisecond)
	if !strings.Contains(out.String(), `"took":"1.5s"`) {
		t.Error(out.String())
	}
}
