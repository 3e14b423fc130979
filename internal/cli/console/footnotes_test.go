package console

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFootnotesAreSharedByRows(t *testing.T) {
	var notes Footnotes
	long := strings.Repeat("x", noteWidth+1)
	marks := []string{notes.Mark("short"), notes.Mark(long), notes.Mark(long), notes.Mark(long + "y")}
	if diff := cmp.Diff([]string{"short", "see (1)", "see (1)", "see (2)"}, marks); diff != "" {
		t.Error(diff)
	}
	var b strings.Builder
	notes.Print(&b)
	if want := "(1) " + long + "\n(2) " + long + "y\n"; b.String() != want {
		t.Errorf("got %q", b.String())
	}
}
