package serve

import (
	"strings"
	"testing"
)

// A patch that is too long ends with a whole line and says so; bytes that are no text
// are replaced.
func TestPatchIsBounded(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("+line\n", 100) + "+\xff\n")
	if p := patchOf(text, false, len(text)); p.Cut || !strings.HasSuffix(p.Patch, "+\uFFFD\n") {
		t.Errorf("%+v", p)
	}
	if p := patchOf(text, false, 20); !p.Cut || p.Patch != "+line\n+line\n+line\n" {
		t.Errorf("%+v", p)
	}
	if p := patchOf(text, true, len(text)); !p.Cut {
		t.Error("what was cut before is not said")
	}
}
