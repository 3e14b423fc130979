package verify

import (
	"slices"
	"strings"
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

// A kernel that cannot tell mounts apart is named; either way to do so is enough.
func TestMountsThatGoUnnoticedAreNamed(t *testing.T) {
	for _, test := range []struct {
		openat2, ids bool
		want         Status
	}{{true, true, OK}, {true, false, OK}, {false, true, OK}, {false, false, Note}} {
		c := mountsNoticed(test.openat2, test.ids)
		if c.Status != test.want || c.Status == Note && !strings.Contains(c.Found, "do not notice a mount") {
			t.Errorf("openat2 %v, mount ids %v: %+v", test.openat2, test.ids, c)
		}
	}
	if c := kernelMounts(); c.Status != OK {
		t.Errorf("this kernel: %+v", c) // 5.8 and later have both
	}
}
