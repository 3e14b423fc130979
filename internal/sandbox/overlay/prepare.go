package overlay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// Request is an overlay that is wanted.
type Request struct {
	State  string // the state directory, which no base may be inside or around
	Dir    string // <state>/overlay/<slug>/<n>
	Base   string // a directory of the host
	Target string // where the sandbox sees it
	Owner  string // the agent; the base of another one is refused. "": not checked

	Want      Kind // "": Auto
	Kernel    KernelMount
	CopyLimit Limit
	Empty     []string // names of directories that a copy has without what is in them
	Hide      HideFunc // decides which files are not visible inside; nil: none
}

// Prepare makes an overlay, or opens the one that is there, which may be mounted.
func Prepare(ctx context.Context, r Request) (*Tree, error) {
	facts, err := checkBase(r)
	if err != nil {
		return nil, err
	}
	parent := filepath.Dir(r.Dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	release, err := holdDir(ctx, parent)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := removeDiscarded(parent, time.Now()); err != nil {
		return nil, err
	}
	t, err := Load(r.Dir)
	if errors.Is(err, ErrNone) {
		return create(ctx, r, facts)
	} else if err != nil {
		return nil, err
	}
	return t, t.reopen(r, facts)
}

// reopen checks that the overlay that is there is the one that is wanted. A base that
// was moved is the same base. A kind never changes while there may be changes.
func (t *Tree) reopen(r Request, base hostpath.Facts) error {
	switch {
	case t.Base != base.Canonical && !t.isBase(base):
		return fmt.Errorf("the overlay at %q is of %q, not of %q", t.Dir, t.Base, base.Canonical)
	case !t.isBase(base):
		return fmt.Errorf("%w: %q was exchanged for another directory since the overlay was made", ErrBaseGone, t.Base)
	case t.Kind == Kernel && r.Kernel.Marks != t.Marks:
		return fmt.Errorf("the overlay at %q was mounted with %s marks, which cannot be done now: %s", t.Dir, t.Marks, r.Kernel.Why)
	}
	volatile := r.Kernel.Volatile && t.Kind == Kernel
	if t.Target != r.Target || t.Volatile != volatile || t.Base != base.Canonical || t.BaseID != base.ID() {
		t.Target, t.Volatile, t.Base, t.BaseID = r.Target, volatile, base.Canonical, base.ID()
		if err := t.save(); err != nil {
			return err
		}
	}
	return t.noticeBoot()
}

// create makes the overlay beside its place and moves it there when it is complete.
func create(ctx context.Context, r Request, base hostpath.Facts) (*Tree, error) {
	choice, err := choose(ctx, r, choiceFacts{base, smallBase()})
	if err != nil {
		return nil, err
	}
	building := r.Dir + buildingSuffix
	if err := errors.Join(removeTree(building), os.Mkdir(building, 0o700)); err != nil {
		return nil, err
	}
	t := &Tree{
		Version: version, Base: base.Canonical, BaseID: base.ID(), Target: r.Target, Dir: building, Owner: r.Owner,
		Kind: choice.Kind, Marks: choice.Marks, Why: choice.Why, Costs: choice.Costs, Boot: bootID(),
		Volatile: r.Kernel.Volatile && choice.Kind == Kernel, Since: time.Now().UTC(),
	}
	if t.Kind == Copy {
		t.Empty = r.Empty
	}
	if err := t.fill(ctx, r); err != nil {
		return nil, errors.Join(err, removeTree(building))
	}
	// What is there without a record is what a crash left.
	if err := errors.Join(removeTree(r.Dir), os.Rename(building, r.Dir)); err != nil {
		return nil, err
	}
	t.Dir, t.fresh = r.Dir, true
	return t, nil
}

// fill makes what is in the directory of an overlay, the record last.
func (t *Tree) fill(ctx context.Context, r Request) error {
	root, err := t.openBase()
	if err != nil {
		return err
	}
	defer root.Close()
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &st); err != nil {
		return err
	}
	t.Foreign = foreign(int64(st.Type)) != ""
	covers, err := t.noteBase(ctx, root, r.Hide)
	if err != nil {
		return err
	}
	if t.Kind == Copy {
		err = t.makeCopy(ctx, root, covers)
	} else {
		err = t.makeUpper(root, covers)
	}
	if err != nil {
		return err
	}
	return t.save()
}

// noteBase writes the manifest of the base and returns what is to be hidden.
func (t *Tree) noteBase(ctx context.Context, root *os.File, hide HideFunc) (map[string]Cover, error) {
	s := scan{ctx: ctx, hashNew: true, empty: t.Empty}
	covers, err := hide.run(ctx, func(look func(Candidate)) error {
		s.look = look
		return s.write(filepath.Join(t.Dir, baseManifest), root)
	})
	if err != nil {
		return nil, fmt.Errorf("base %q: %w", t.Base, err)
	}
	if t.Kind == Copy {
		entries := MaxBase - s.left
		t.Began = Limit{Bytes: s.bytes + int64(entries)*blockSize, Files: entries}
	}
	return covers, nil
}

// blockSize is what the smallest file takes of most disks.
const blockSize = 4 << 10

// write writes the manifest of a tree to a file.
func (s *scan) write(name string, root *os.File) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	s.out = newManifestWriter(file)
	return errors.Join(s.run(root), file.Close())
}

// removeTree removes a directory of ours, also where directories in it forbid that.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("cannot remove %q: %s", dir, strings.TrimSpace(err.Error()))
	}
	return nil
}
