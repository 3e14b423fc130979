package checkout

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrMoved means that a ref is not where it was last seen.
var ErrMoved = errors.New("the branch moved meanwhile")

// Writer adds packs and refs to a repository. It follows no link out of it.
type Writer struct {
	root  *os.Root
	owner *syscall.Stat_t // of the repository; nil if that is this user
}

// Writer opens the repository for adding to it; Close ends that.
func (c *Checkout) Writer() (*Writer, error) {
	root, err := os.OpenRoot(c.Common)
	if err != nil {
		return nil, err
	}
	return &Writer{root, ownerOf(c.Common)}, nil
}

// Close releases the repository.
func (w *Writer) Close() error { return w.root.Close() }

// ownerOf returns the owner of a directory if that is another user and this
// process may change owners; otherwise nil.
func ownerOf(dir string) *syscall.Stat_t {
	info, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return nil
	}
	return st
}

// AddPack adds the pack that dir has under a name. The index comes last: without
// it git does not see the pack.
func (w *Writer) AddPack(dir, name string) error {
	if err := w.mkdir("objects/pack"); err != nil {
		return err
	}
	for _, end := range []string{".pack", ".idx"} {
		if err := w.copy(filepath.Join(dir, name+end), "objects/pack/"+name+end); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) copy(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return w.write(path.Join(path.Dir(to), "tmp_atoll_"+rand.Text()), to, 0o444, func(file io.Writer) error {
		_, err := io.Copy(file, source)
		return err
	})
}

// MoveRef sets a ref to a commit if it is where it was last seen, under the lock
// file that git uses; seen "" means that it did not exist. ErrMoved if it moved.
func (w *Writer) MoveRef(ref, to, seen string) error {
	if !fs.ValidPath(ref) || !strings.HasPrefix(ref, "refs/") || strings.HasSuffix(ref, ".lock") {
		return fmt.Errorf("%.200q is not the name of a ref", ref)
	}
	if err := w.mkdir(path.Dir(ref)); err != nil {
		return err
	}
	var same error
	err := w.write(ref+".lock", ref, 0o644, func(file io.Writer) error {
		if same = w.checkRef(ref, to, seen); same != nil {
			return same
		}
		_, err := io.WriteString(file, to+"\n")
		return err
	})
	switch {
	case errors.Is(same, errUnchanged):
		return nil
	case errors.Is(err, os.ErrExist):
		return errhint.With(fmt.Errorf("git is changing %s at this moment", ref), "try again; if no git runs, remove "+filepath.Join(w.root.Name(), ref+".lock"))
	}
	return err
}

// errUnchanged ends the writing of a ref that has its value already.
var errUnchanged = errors.New("unchanged")

// checkRef checks, under the lock of a ref, that it may be set.
func (w *Writer) checkRef(ref, to, seen string) error {
	refs, err := readRefs(w.root)
	if err != nil {
		return err
	}
	switch now := refs[ref]; {
	case now == to:
		return errUnchanged
	case now != seen:
		return ErrMoved
	}
	if other := collision(refs, ref); other != "" {
		return errhint.With(fmt.Errorf("%s cannot be beside %s, which exists", strings.TrimPrefix(ref, "refs/heads/"), strings.TrimPrefix(other, "refs/heads/")), "name another branch")
	}
	return nil
}

// write makes a file atomically: under a temporary name, synced, renamed.
func (w *Writer) write(temporary, name string, mode os.FileMode, fill func(io.Writer) error) error {
	file, err := w.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = fill(file)
	if w.owner != nil {
		err = errors.Join(err, file.Chown(int(w.owner.Uid), int(w.owner.Gid)))
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = w.root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, w.root.Remove(temporary))
	}
	return nil
}

// mkdir makes a directory and those above it, for the owner of the repository.
func (w *Writer) mkdir(dir string) error {
	if dir == "." {
		return nil
	}
	if err := w.mkdir(path.Dir(dir)); err != nil {
		return err
	}
	err := w.root.Mkdir(dir, 0o755)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err == nil && w.owner != nil {
		err = w.root.Lchown(dir, int(w.owner.Uid), int(w.owner.Gid))
	}
	return err
}
