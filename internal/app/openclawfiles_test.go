package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/run/execute"
)

// A place that is not there is said before anything is made: tokens that are
// made anew would lock a running gateway out.
func TestOpenClawFilesNeedADirectory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.open()
	s.write(filepath.Join(s.dir, "file"), "")
	dir := filepath.Join(s.dir, "file")
	err := a.Runs.WriteOpenClawFiles(t.Context(), execute.OpenClawFiles{Dir: dir, Slots: 2})
	if err == nil || !strings.Contains(err.Error(), dir+" is not a directory") || !strings.Contains(errhint.Of(err), "--dir") {
		t.Errorf("%v (%s)", err, errhint.Of(err))
	}
}

// A directory that is not there is made.
func TestOpenClawFilesMakeTheirDirectory(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir := filepath.Join(s.dir, "new", "openclaw")
	err := s.open().Runs.WriteOpenClawFiles(t.Context(), execute.OpenClawFiles{Dir: dir, Slots: 2})
	if err == nil || strings.Contains(err.Error(), "directory") { // no models are known here
		t.Error(err)
	}
	if !exists(t, dir) {
		t.Error("it was not made")
	}
}
