package archive

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// Limits of what one archive makes on the host: MaxEntries and MaxBytes of all,
// MaxName and MaxDepth of one.
const (
	MaxEntries = 1_000_000
	MaxBytes   = 64 << 30
	MaxName    = 4096
	MaxDepth   = 128
)

// ErrHostile is an archive that asks for something that none of ours has.
var ErrHostile = errors.New("archive refused")

// Target says where an archive goes.
type Target struct {
	Dir string // an existing directory on the host: nothing lands outside of it
	// Rename replaces the first element of every name, "" keeps it. "." drops it
	// and puts what is below into Dir.
	Rename string
	// Links makes symbolic links too, whatever they lead to; nothing follows one out of
	// Dir. An archive with one is refused otherwise.
	Links bool
}

// Unpack makes the files and directories of an archive. A file that exists is
// replaced, a link in its place too; a directory that exists is kept.
func Unpack(ctx context.Context, archive io.Reader, to Target) error {
	root, err := os.OpenRoot(to.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, archive: tar.NewReader(archive), rename: to.Rename, links: to.Links, left: MaxBytes}
	for range MaxEntries {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := u.archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.entry(header); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: more than %d entries", ErrHostile, MaxEntries)
}

type unpacker struct {
	root    *os.Root
	archive *tar.Reader
	rename  string
	links   bool
	left    int64
}

func (u *unpacker) entry(header *tar.Header) error {
	name, err := u.place(header.Name)
	if err != nil || name == "." {
		return err
	}
	switch {
	case header.Typeflag == tar.TypeDir:
		return u.dir(name)
	case header.Typeflag == tar.TypeReg:
		return u.file(name, header)
	case header.Typeflag == tar.TypeSymlink && u.links:
		return u.link(name, header.Linkname)
	}
	return fmt.Errorf("%w: %q is neither a file nor a directory", ErrHostile, header.Name)
}

// place is where an entry goes, below the root.
func (u *unpacker) place(name string) (string, error) {
	clean := path.Clean(name)
	if len(name) > MaxName || !fs.ValidPath(clean) || strings.ContainsRune(name, 0) || strings.Count(clean, "/") >= MaxDepth {
		return "", fmt.Errorf("%w: name %.60q", ErrHostile, name)
	}
	if u.rename == "" {
		return clean, nil
	}
	_, rest, _ := strings.Cut(clean, "/")
	return path.Join(u.rename, rest), nil
}

// dir makes a directory that its owner can use, whatever the archive says.
func (u *unpacker) dir(name string) error {
	info, err := u.root.Lstat(name)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s exists and is not a directory", name)
	}
	return u.root.MkdirAll(name, 0o755)
}

// link makes a symbolic link, in the place of a file or link of its name.
func (u *unpacker) link(name, target string) error {
	if target == "" || len(target) > MaxName {
		return fmt.Errorf("%w: link %.60q to %.60q", ErrHostile, name, target)
	}
	if err := u.above(name); err != nil {
		return err
	}
	if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
		return fmt.Errorf("%s exists and is a directory", name)
	}
	if err := u.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return u.root.Symlink(target, name)
}

// above makes the directory that a name is in.
func (u *unpacker) above(name string) error {
	if dir := path.Dir(name); dir != "." {
		return u.root.MkdirAll(dir, 0o755)
	}
	return nil
}

// file writes a file beside its place and moves it there whole.
func (u *unpacker) file(name string, header *tar.Header) error {
	if u.left -= header.Size; u.left < 0 {
		return fmt.Errorf("%w: more than %d bytes", ErrHostile, int64(MaxBytes))
	}
	if err := u.above(name); err != nil {
		return err
	}
	if info, err := u.root.Lstat(name); err == nil && info.IsDir() {
		return fmt.Errorf("%s exists and is a directory", name)
	}
	temporary := path.Join(path.Dir(name), fmt.Sprintf(".atoll-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if err := u.write(temporary, header); err != nil {
		_ = u.root.Remove(temporary)
		return err
	}
	if err := u.root.Rename(temporary, name); err != nil {
		_ = u.root.Remove(temporary)
		return err
	}
	return nil
}

// write makes a new file with the content and the permissions of an entry, but
// none that would give rights away.
func (u *unpacker) write(name string, header *tar.Header) error {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, u.archive)
	mode := fs.FileMode(header.Mode) & 0o755
	if err := errors.Join(err, f.Chmod(mode|0o600), f.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, time.Time{}, header.ModTime)
}
