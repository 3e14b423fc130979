package overlay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/hostpath/clone"
)

// makeCopy copies the base, removes what is hidden and notes what is left.
func (t *Tree) makeCopy(ctx context.Context, base *os.File, covers map[string]Cover) error {
	if err := os.Mkdir(t.Source(), 0o700); err != nil {
		return err
	}
	tree, err := hostpath.OpenDir(t.Source())
	if err != nil {
		return err
	}
	defer tree.Close()
	if err := clone.Tree(ctx, base, tree, clone.Options{Empty: t.Empty.has}); err != nil {
		return fmt.Errorf("copy of %q: %w", t.Base, err)
	}
	for _, rel := range inOrder(covers) {
		if err := t.coverCopy(tree, rel, covers[rel]); err != nil {
			return fmt.Errorf("hide %.300q: %w", rel, err)
		}
	}
	return t.noteCopy(ctx, tree)
}

// noteCopy writes the manifest of the copy.
func (t *Tree) noteCopy(ctx context.Context, tree *os.File) error {
	s := scan{ctx: ctx}
	return s.write(filepath.Join(t.Dir, treeManifest), tree)
}

// coverCopy removes a file from the copy, or writes what is shown instead.
func (t *Tree) coverCopy(tree *os.File, rel string, c Cover) error {
	dir, err := hostpath.OpenBeneath(tree, path.Dir(rel), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	st, err := statAt(dir, path.Base(rel))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := unix.Unlinkat(int(dir.Fd()), path.Base(rel), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.show(dir, rel, &st, c)
}

// show writes what is visible in place of a hidden file, and notes it.
func (t *Tree) show(dir *os.File, rel string, like *unix.Stat_t, c Cover) error {
	hidden := Hidden{Path: rel}
	if c.Instead != nil {
		sum, err := sumOf(bytes.NewReader(c.Instead))
		if err != nil {
			return err
		}
		hidden.SHA256 = sum
		options := hostpath.WriteOptions{Mode: fs.FileMode(like.Mode & 0o777), Owner: ownerLike(like)}
		if _, err := hostpath.WriteBeneath(dir, path.Base(rel), bytes.NewReader(c.Instead), options); err != nil {
			return err
		}
	}
	t.Hidden = append(t.Hidden, hidden)
	return nil
}

// ownerLike returns the owner of a file if this process can give files away.
func ownerLike(st *unix.Stat_t) *hostpath.Owner {
	if os.Geteuid() != 0 {
		return nil
	}
	return &hostpath.Owner{UID: int(st.Uid), GID: int(st.Gid)}
}

// makeUpper makes the directories of a kernel overlay, and hides files by
// whiteouts, before anything is mounted.
func (t *Tree) makeUpper(base *os.File, covers map[string]Cover) error {
	if err := errors.Join(os.Mkdir(t.Upper(), 0o700), os.Mkdir(t.Work(), 0o700)); err != nil {
		return err
	}
	upper, err := hostpath.OpenDir(t.Upper())
	if err != nil {
		return err
	}
	defer upper.Close()
	if err := t.probeMarks(upper); err != nil {
		return err
	}
	for _, rel := range inOrder(covers) {
		if err := t.coverUpper(base, upper, rel, covers[rel]); err != nil {
			return fmt.Errorf("hide %.300q: %w", rel, err)
		}
	}
	return likeDir(base, upper)
}

// probeMarks checks that the file system keeps the marks of the kernel.
func (t *Tree) probeMarks(upper *os.File) error {
	name := string(t.Marks) + ".overlay.probe"
	if err := unix.Fsetxattr(int(upper.Fd()), name, []byte("y"), 0); err != nil {
		return fmt.Errorf("the file system of %q keeps no %s attributes: %w", t.Dir, t.Marks, err)
	}
	return unix.Fremovexattr(int(upper.Fd()), name)
}

// coverUpper puts a whiteout, or what is shown instead, over a file of the base.
func (t *Tree) coverUpper(base, upper *os.File, rel string, c Cover) error {
	below, above, err := sameDirs(base, upper, path.Dir(rel))
	if err != nil {
		return err
	}
	defer closeFile(below)
	defer closeFile(above)
	st, err := statAt(below, path.Base(rel))
	if err != nil {
		return err
	}
	if c.Instead == nil {
		if err := unix.Mknodat(int(above.Fd()), path.Base(rel), unix.S_IFCHR, 0); err != nil {
			return fmt.Errorf("whiteout: %w", err)
		}
	}
	return errors.Join(t.show(above, rel, &st, c), likeDir(below, above))
}

// sameDirs opens a directory of the base and makes the same one in the upper.
func sameDirs(base, upper *os.File, rel string) (below, above *os.File, err error) {
	if below, err = openDirAt(base, "."); err != nil {
		return nil, nil, err
	}
	if above, err = openDirAt(upper, "."); err != nil || rel == "." {
		return below, above, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		nextBelow, err := openDirAt(below, name)
		if err != nil {
			return below, above, err
		}
		closeFile(below)
		below = nextBelow
		nextAbove, err := makeDirAt(above, name, below)
		if err != nil {
			return below, above, err
		}
		closeFile(above)
		above = nextAbove
	}
	return below, above, nil
}

// makeDirAt opens a directory, making it like another one if it is missing.
func makeDirAt(parent *os.File, name string, like *os.File) (*os.File, error) {
	err := unix.Mkdirat(int(parent.Fd()), name, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	dir, openErr := openDirAt(parent, name)
	if openErr != nil || err != nil {
		return dir, openErr
	}
	return dir, likeDir(like, dir)
}

// likeDir gives a directory the owner, mode and time of another one.
func likeDir(like, dir *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(like.Fd()), &st); err != nil {
		return err
	}
	if owner := ownerLike(&st); owner != nil {
		if err := dir.Chown(owner.UID, owner.GID); err != nil {
			return err
		}
	}
	at := unix.NsecToTimeval(st.Mtim.Nano())
	return errors.Join(unix.Fchmod(int(dir.Fd()), st.Mode&0o7777), unix.Futimes(int(dir.Fd()), []unix.Timeval{at, at}))
}
