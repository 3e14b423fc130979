package sandboxcmd

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrappedNeverBreaksAWord(t *testing.T) {
	got := wrapped("aa bb cccccccccc d", 5)
	if diff := cmp.Diff([]string{"aa bb", "cccccccccc", "d"}, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{""}, wrapped("", 5)); diff != "" {
		t.Error(diff)
	}
}
