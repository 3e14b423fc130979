package machine

import (
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

// TestStreamsStayWithinTheWire: a wire has room for all that a machine has under
// way.
func TestStreamsStayWithinTheWire(t *testing.T) {
	if all := maxTransfers + MaxWatches + maxPortStreams; all > wire.MaxStreams-32 {
		t.Errorf("%d streams leave no room for others", all)
	}
}
