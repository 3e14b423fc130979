package overlay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/hostpath"
)

const (
	recordName = "record.json"
	maxRecord  = 64 << 20
	version    = 1
)

var (
	// ErrNone means that there is no overlay.
	ErrNone = errors.New("there is no overlay")
	// ErrBaseGone means that the base is not the directory that the overlay was made for.
	ErrBaseGone = errors.New("the base is gone")
)

// Tree is one base and what was changed above it. Its exported fields are kept
// in the record.
type Tree struct {
	Version  int         `json:"version"`
	Base     string      `json:"base"`
	BaseID   hostpath.ID `json:"baseId"`
	Target   string      `json:"target"`
	Dir      string      `json:"-"`
	Owner    string      `json:"owner,omitempty"`
	Kind     Kind        `json:"kind"`
	Marks    Marks       `json:"marks,omitempty"`
	Why      string      `json:"why"`
	Costs    []string    `json:"costs,omitempty"`
	Boot     string      `json:"boot,omitempty"`
	Volatile bool        `json:"volatile,omitempty"`
	Settled  bool        `json:"settled,omitempty"` // all changes were brought to disk since the last mount
	Torn     bool        `json:"torn,omitempty"`
	Hidden   []Hidden    `json:"hidden,omitempty"`
	Foreign  bool        `json:"foreign,omitempty"` // the base's file system has times and inodes of its own
	Since    time.Time   `json:"since"`
	Empty    emptyDirs   `json:"empty,omitempty"` // of a copy
	// Began is what a copy held when it was made, each entry with a block of the
	// disk more; zero for a kernel overlay.
	Began Limit `json:"began,omitzero"`

	fresh bool
	mu    sync.Mutex // guards notes
	notes *notes
}

// Hidden is a file of the base that the sandbox does not see.
type Hidden struct {
	Path   string
	SHA256 string // of what is shown instead
}

type hiddenJSON struct {
	Path   quoted `json:"path"`
	SHA256 string `json:"sha256,omitempty"`
}

// MarshalJSON keeps a path of any bytes.
func (h Hidden) MarshalJSON() ([]byte, error) {
	return json.Marshal(hiddenJSON{quoted(h.Path), h.SHA256})
}

// UnmarshalJSON reads what MarshalJSON returns.
func (h *Hidden) UnmarshalJSON(data []byte) error {
	var kept hiddenJSON
	err := json.Unmarshal(data, &kept)
	h.Path, h.SHA256 = string(kept.Path), kept.SHA256
	return err
}

// IsNew reports whether Prepare has just made the overlay.
func (t *Tree) IsNew() bool { return t.fresh }

// Upper returns the upper directory of a kernel overlay.
func (t *Tree) Upper() string { return filepath.Join(t.Dir, "upper") }

// Work returns the work directory of a kernel overlay.
func (t *Tree) Work() string { return filepath.Join(t.Dir, "work") }

// Source returns the directory that is mounted in the sandbox for a copy.
func (t *Tree) Source() string { return filepath.Join(t.Dir, "tree") }

// above returns the directory that holds what the sandbox wrote.
func (t *Tree) above() string {
	if t.Kind == Copy {
		return t.Source()
	}
	return t.Upper()
}

// Load reads the record of an overlay. ErrNone if there is none.
func Load(dir string) (*Tree, error) {
	root, err := hostpath.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%q: %w", dir, ErrNone)
	} else if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := hostpath.ReadRegularBeneath(root, recordName, maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%q: %w", dir, ErrNone)
	} else if err != nil {
		return nil, err
	}
	t := &Tree{Dir: dir}
	if err := json.Unmarshal(data, t); err != nil {
		return nil, fmt.Errorf("record of the overlay at %q: %w", dir, err)
	}
	return t, t.check()
}

// check refuses a record that this version did not write.
func (t *Tree) check() error {
	switch {
	case t.Version != version:
		return fmt.Errorf("overlay at %q has version %d, this program reads version %d", t.Dir, t.Version, version)
	case !filepath.IsAbs(t.Base),
		t.Kind == Copy && t.Marks != "",
		t.Kind == Kernel && t.Marks != MarksTrusted && t.Marks != MarksUser,
		t.Kind != Copy && t.Kind != Kernel:
		return fmt.Errorf("record of the overlay at %q is damaged", t.Dir)
	}
	return nil
}

func (t *Tree) save() error {
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	root, err := hostpath.OpenDir(t.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = hostpath.WriteBeneath(root, recordName, bytes.NewReader(data), hostpath.WriteOptions{Replace: true})
	return err
}

// isBase reports whether a directory is the one that the overlay was made for.
// Another boot may number devices anew, and some file systems number all anew.
func (t *Tree) isBase(found hostpath.Facts) bool {
	id := hostpath.ID{Device: found.Device, Inode: found.Inode}
	return id == t.BaseID || t.Foreign && found.Canonical == t.Base || id.Inode == t.BaseID.Inode && t.Boot != bootID()
}

// openBase opens the base if it still is the directory that the overlay was made for.
func (t *Tree) openBase() (*os.File, error) {
	root, err := hostpath.OpenDir(t.Base)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBaseGone, err)
	}
	facts, err := hostpath.IdentifyBeneath(root, ".")
	if err == nil && !t.isBase(hostpath.Facts{Canonical: t.Base, Device: facts.Device, Inode: facts.Inode, Exists: true}) {
		err = fmt.Errorf("%w: %q is another directory now", ErrBaseGone, t.Base)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}
