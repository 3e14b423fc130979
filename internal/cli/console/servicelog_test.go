package console

import (
	"strings"
	"testing"
	"time"
)

// A service's log says how long something took with a unit.
func TestServiceLogHasReadableDurations(t *testing.T) {
	var out strings.Builder
	NewEnv(&Terminal{Out: &out, Err: &out}).ServiceLogger().Info("done", "took", 1500*time.Millisecond)
	if !strings.Contains(out.String(), `"took":"1.5s"`) {
		t.Error(out.String())
	}
}
