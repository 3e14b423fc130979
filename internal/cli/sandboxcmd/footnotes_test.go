package sandboxcmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFootnotesAreSharedByRows(t *testing.T) {
	var notes footnotes
	long := strings.Repeat("x", noteWidth+1)
	marks := []string{notes.mark("short"), notes.mark(long), notes.mark(long), notes.mark(long + "y")}
	if diff := cmp.Diff([]string{"short", "see (1)", "see (1)", "see (2)"}, marks); diff != "" {
		t.Error(diff)
	}
	var b strings.Builder
	notes.print(&b)
	if want := "(1) " + long + "\n(2) " + long + "y\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
}
