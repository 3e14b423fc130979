package tailbuf

import (
	"strings"
	"testing"
)

func TestTheEndIsKept(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts []string
		want  string
		lost  bool
	}{
		{"nothing", nil, "", false},
		{"little", []string{"ab", "c"}, "abc", false},
		{"exactly as much", []string{"ab", "cd"}, "abcd", false},
		{"a little more", []string{"ab", "cde"}, "bcde", true},
		{"much more at once", []string{"abcdefghijklmnop"}, "mnop", true},
		{"byte by byte", strings.Split("abcdefghijklmnop", ""), "mnop", true},
	} {
		w := &Writer{Most: 4}
		for _, part := range tt.parts {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Errorf("%s: wrote %d, %v", tt.name, n, err)
			}
			if cap(w.kept) > 64 {
				t.Errorf("%s: it holds %d bytes", tt.name, cap(w.kept))
			}
		}
		if got := string(w.Bytes()); got != tt.want || w.Lost() != tt.lost {
			t.Errorf("%s: %q, lost %t", tt.name, got, w.Lost())
		}
	}
}
