package directory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/filelock"
)

// ErrNone means that a directory has no record.
var ErrNone = errors.New("nothing was run in this directory yet")

// FileName is the file of the records, below the state directory.
const FileName = "directories.json"

// MaxRecords bounds the records. Beyond it those of directories that are gone are
// dropped, and then the oldest.
const MaxRecords = 10_000

// Records are the directories of an installation.
type Records struct{ State string }

func (r Records) file() string { return filepath.Join(r.State, FileName) }

// Find returns the record of a directory that Locate returned; ErrNone if there is
// none.
func (r Records) Find(d *Directory) (*Directory, error) {
	list, err := r.read()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, d.is)
	if at < 0 {
		return nil, fmt.Errorf("%s: %w", d.Path, ErrNone)
	}
	return list[at].at(d), nil
}

// at is a record with the place where its directory is now.
func (recorded *Directory) at(d *Directory) *Directory {
	found := *d
	found.ID, found.Image = recorded.ID, recorded.Image
	if recorded.Path != d.Path {
		found.Moved = recorded.Path
	}
	return &found
}

// Record returns the record of a directory, made if there is none. Image replaces the
// one that is recorded, unless it is empty.
func (r Records) Record(ctx context.Context, d *Directory, image string) (*Directory, error) {
	release, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	list, err := r.read()
	if err != nil {
		return nil, err
	}
	found := *d
	found.ID = newID(d.Path)
	if at := slices.IndexFunc(list, d.is); at >= 0 {
		found = *list[at].at(d)
		if found.Moved == "" && (image == "" || image == found.Image) {
			return &found, nil
		}
		list = slices.Delete(list, at, at+1)
	}
	if image != "" {
		found.Image = image
	}
	return &found, r.write(append(bounded(list), &found))
}

func (r Records) lock(ctx context.Context) (release func(), err error) {
	locks, err := filelock.Open(r.file() + ".lock")
	if err != nil {
		return nil, err
	}
	held, err := locks.Hold(ctx, FileName)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", FileName, err)
	}
	return held.Release, nil
}

// newID returns an id with the name of the directory in it, for people.
func newID(path string) string {
	name := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(filepath.Base(path)))
	name = strings.Trim(name[:min(len(name), 24)], "-")
	return strings.Trim(name+"-"+strings.ToLower(rand.Text()[:10]), "-")
}

// bounded leaves room for one more record.
func bounded(list []*Directory) []*Directory {
	if len(list) < MaxRecords {
		return list
	}
	list = slices.DeleteFunc(list, func(d *Directory) bool {
		now := &Directory{Path: d.Path}
		return now.identify() != nil
	})
	return list[max(0, len(list)-MaxRecords+1):]
}

func (r Records) read() ([]*Directory, error) {
	text, err := os.ReadFile(r.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []*Directory
	if err := json.Unmarshal(text, &list); err != nil || slices.Contains(list, nil) {
		return nil, errhint.With(fmt.Errorf("%s cannot be read: %w", r.file(), err), "move it away: directories get new sandboxes then")
	}
	return list, nil
}

// write replaces the file in one step.
func (r Records) write(list []*Directory) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(r.State, "."+FileName+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), r.file())
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
