package verify

import (
	"slices"
	"testing"
)

// Wherever the tests run, sandboxes do: the rings can be built.
func TestKernelOfThisHost(t *testing.T) {
	checks := Kernel()
	var rings []string
	for _, c := range checks {
		if rings = append(rings, c.Ring); c.Status == Gap || c.Found == "" {
			t.Errorf("%s: %s: %s, found %q", c.Ring, c.Name, c.Promised, c.Found)
		}
	}
	for _, ring := range []string{"privileges", "system calls", "namespaces", "files", "limits", "devices"} {
		if !slices.Contains(rings, ring) {
			t.Errorf("nothing is said about %s", ring)
		}
	}
}
