package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// gitWriter adds files to a person's repository. It follows no link out of it.
type gitWriter struct {
	root  *os.Root
	owner *syscall.Stat_t // of the repository; nil if that is this user
}

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

// addPack adds the objects that a commit has and another has not. The index comes
// last: without it git does not see the pack.
func (w *gitWriter) addPack(ctx context.Context, repo *git.Repo, head, from string) error {
	dir, err := os.MkdirTemp(repo.Dir(), "pack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it goes with the quarantine
	name, err := repo.PackTo(ctx, filepath.Join(dir, "pack"), head, from)
	if err != nil || name == "" {
		return err
	}
	if err := w.mkdir("objects/pack"); err != nil {
		return err
	}
	for _, end := range []string{".pack", ".idx"} {
		if err := w.copy(filepath.Join(dir, "pack-"+name+end), "objects/pack/pack-"+name+end); err != nil {
			return err
		}
	}
	return nil
}

func (w *gitWriter) copy(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return w.write(path.Join(path.Dir(to), "tmp_atoll_"+rand.Text()), to, 0o444, source)
}

// moveRef sets a ref to a commit, under the lock file that git uses.
func (w *gitWriter) moveRef(ref, to, seen string) error {
	if err := w.mkdir(path.Dir(ref)); err != nil {
		return err
	}
	now, err := w.refValue(ref)
	if err != nil || now == to {
		return err
	}
	if now != seen {
		return git.ErrStale
	}
	return w.write(ref+".lock", ref, 0o644, strings.NewReader(to+"\n"))
}

// write makes a file atomically: under a temporary name, synced, renamed.
func (w *gitWriter) write(temporary, name string, mode os.FileMode, from io.Reader) error {
	file, err := w.root.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
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
func (w *gitWriter) mkdir(dir string) error {
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
