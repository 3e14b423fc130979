package verify

import "testing"

// TestSocketBuffers: socket buffers without a limit are noted, whether the limit was read
// from outside the sandbox or from inside.
func TestSocketBuffers(t *testing.T) {
	for _, c := range []struct {
		name            string
		inside, outside int64
		want            Status // "": nothing is said
	}{
		{"not to be seen", 0, 0, ""}, {"a pod, version 1", noLimit, 0, Note}, {"a pod, version 2", 1 << 28, 0, OK},
		{"an engine, version 1", 0, noLimit, Note}, {"the host knows better", 1 << 28, noLimit, Note}, {"more than the memory", 1 << 40, 0, Note},
	} {
		e := sound()
		e.Inside.Limits.Sockets, e.Outside.Limits.Sockets = c.inside, c.outside
		var found Status
		for _, check := range Checks(e) {
			if check.Ring == limitRing && check.Name == "socket buffers" {
				found = check.Status
			}
		}
		if found != c.want {
			t.Errorf("%s: %q, want %q", c.name, found, c.want)
		}
	}
}
