package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrappedNeverBreaksAWord(t *testing.T) {
	got := Wrapped("aa bb cccccccccc d", 5)
	if diff := cmp.Diff([]string{"aa bb", "cccccccccc", "d"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{""}, Wrapped("", 5)); diff != "" {
		t.Error(diff)
	}
}
