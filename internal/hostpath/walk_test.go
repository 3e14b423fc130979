package hostpath

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// What was found under a name is only reported while the name still leads to it.
func TestWalkNoticesWhatChangedOnItsWay(t *testing.T) {
	for name, tc := range map[string]struct {
		path   string
		change func(dir string) error
		want   error
	}{
		"nothing":                {"a/b", func(string) error { return nil }, nil},
		"a sibling":              {"a/b", func(dir string) error { return os.Mkdir(dir+"/c", 0o700) }, nil},
		"directory renamed":      {"a/b", func(dir string) error { return os.Rename(dir+"/a", dir+"/x") }, errRace},
		"directory exchanged":    {"a/b", exchanged, errRace},
		"link in its place":      {"a/b", linked, errRace},
		"missing name appeared":  {"a/new/leaf", func(dir string) error { return os.Mkdir(dir+"/a/new", 0o700) }, errRace},
		"missing name as a link": {"a/new", func(dir string) error { return os.Symlink("/etc", dir+"/a/new") }, errRace},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := newWalk()
			if err == nil {
				defer w.close()
				err = errors.Join(os.MkdirAll(dir+"/a/b", 0o700), w.follow(filepath.Join(dir, tc.path)), tc.change(dir))
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := w.confirm(); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func exchanged(dir string) error {
	return errors.Join(os.Rename(dir+"/a", dir+"/x"), os.MkdirAll(dir+"/a/b", 0o700))
}

func linked(dir string) error {
	return errors.Join(os.Rename(dir+"/a", dir+"/x"), os.Symlink("x", dir+"/a"))
}
