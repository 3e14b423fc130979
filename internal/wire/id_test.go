package wire_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

func TestIDsAreValidAndDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 10_000 {
		id := wire.NewID()
		if !wire.ValidID(id) || seen[id] {
			t.Fatalf("%q, after %d others", id, len(seen))
		}
		seen[id] = true
	}
}
