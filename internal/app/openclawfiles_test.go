package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/app"
)

// A place that is not there is said before anything is made: tokens that are
// made anew would lock a running gateway out.
func TestOpenClawFilesNeedADirectory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	s.write(filepath.Join(s.dir, "file"), "")
	for _, name := range []string{"none", "file"} {
		dir := filepath.Join(s.dir, name)
		err := a.WriteOpenClawFiles(t.Context(), app.OpenClawFiles{Dir: dir, Slots: 2})
		if err == nil || !strings.Contains(err.Error(), dir+" is not a directory") || !strings.Contains(advice.Of(err), "mkdir -p "+dir) {
			t.Errorf("%s: %v (%s)", name, err, advice.Of(err))
		}
	}
}
