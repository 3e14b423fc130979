package quota

import "testing"

// A measure ends by itself, whatever is limited.
func TestEnough(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		found  Usage
		want   bool
	}{
		{"little", Limits{Size: 10, Files: 10}, Usage{Bytes: 20, Files: 20}, false},
		{"twice the size", Limits{Size: 10}, Usage{Bytes: 21}, true},
		{"twice the files", Limits{Files: 10}, Usage{Files: 21}, true},
		{"many, and only the size is limited", Limits{Size: 10}, Usage{Files: mostCounted - 1}, false},
		{"without end, and only the size is limited", Limits{Size: 10}, Usage{Files: mostCounted}, true},
	} {
		m := &meter{limits: &c.limits, Usage: c.found}
		if got := m.enough(); got != c.want || m.Endless != (c.found.Files >= mostCounted) {
			t.Errorf("%s: %t, %+v", c.name, got, m.Usage)
		}
	}
}
