package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

func TestMakePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if mode, err := hostpath.MakePrivate(dir); mode != 0 || err != nil {
		t.Errorf("one that does not exist: %v, %v", mode, err)
	}
	must(t, os.Mkdir(dir, 0o700))
	for _, mode := range []os.FileMode{0o755, 0o770, 0o777, 0o701} {
		must(t, os.Chmod(dir, mode))
		if mended, err := hostpath.MakePrivate(dir); mended != mode || err != nil {
			t.Errorf("mode %04o: mended %04o, %v", mode, mended, err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("mode %04o became %v, %v", mode, info.Mode(), err)
		}
	}
	if mended, err := hostpath.MakePrivate(dir); mended != 0 || err != nil {
		t.Errorf("a private one: %v, %v", mended, err)
	}
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := hostpath.MakePrivate(file); !errors.Is(err, hostpath.ErrNotDirectory) {
		t.Errorf("a file: %v", err)
	}
}

// TestMakePrivateRefusesOthers needs root, who alone can give files away.
func TestMakePrivateRefusesOthers(t *testing.T) {
	need.Root(t, "it gives files away")
	dir := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chown(dir, 54324, 54324))
	if _, err := hostpath.MakePrivate(dir); !errors.Is(err, hostpath.ErrNotPrivate) || errhint.Of(err) == "" {
		t.Errorf("another user's: %v", err)
	}
	must(t, os.Chown(dir, 0, 0))
	must(t, os.Chmod(dir, 0o777))
	planted := filepath.Join(dir, "atoll.json5")
	must(t, os.WriteFile(planted, nil, 0o600))
	must(t, os.Chown(planted, 54324, 54324))
	if _, err := hostpath.MakePrivate(dir); !errors.Is(err, hostpath.ErrNotPrivate) {
		t.Errorf("a file of another user in a directory that all can write: %v", err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("what was refused was changed: %v, %v", info.Mode(), err)
	}
}
