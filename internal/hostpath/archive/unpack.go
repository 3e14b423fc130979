package archive

import (
	"archive/tar"
	"cmp"
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
	// EntryBytes is what each file, directory and link counts beside its content.
	EntryBytes = 4 << 10
	// roomStep is how much is written of a file until Target.Room is called again.
	roomStep = 16 << 20
)

// ErrHostile is an archive that asks for something that none of ours has, ErrTooLarge one
// that holds more than its target may.
var (
	ErrHostile  = errors.New("archive refused")
	ErrTooLarge = fmt.Errorf("%w: too large", ErrHostile)
)

// Target says where an archive goes.
type Target struct {
	Dir string // an existing directory on the host: nothing lands outside of it
	// Rename replaces the first element of every name, "" keeps it. "." drops it
	// and puts what is below into Dir.
	Rename string
	// Links makes symbolic links too, whatever they lead to; nothing follows one out of
	// Dir. An archive with one is refused otherwise.
	Links bool
	// MaxBytes is how much the archive may hold, EntryBytes for each entry among it; 0 is
	// MaxBytes. Files count by their length: what is not written of a sparse file, and each
	// name of a hard link, counts too.
	MaxBytes int64
	// Room, unless nil, is called before each file, with its length, and while it is written:
	// an error ends the unpacking.
	Room func(bytes int64) error
}

// Unpack makes the files and directories of an archive. A file that exists is
// replaced, a link in its place too; a directory that exists is kept.
func Unpack(ctx context.Context, archive io.Reader, to Target) error {
	root, err := os.OpenRoot(to.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	most := cmp.Or(to.MaxBytes, MaxBytes)
	u := &unpacker{root: root, archive: tar.NewReader(archive), to: to, most: most, left: most}
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
	root       *os.Root
	archive    *tar.Reader
	to         Target
	most, left int64 // bytes: in all, and of them what was not taken yet
}

func (u *unpacker) entry(header *tar.Header) error {
	name, err := u.place(header.Name)
	if err != nil || name == "." {
		return err
	}
	if err := u.take(header.Size); err != nil {
		return err
	}
	switch {
	case header.Typeflag == tar.TypeDir:
		return u.dir(name)
	case header.Typeflag == tar.TypeReg:
		return u.file(name, header)
	case header.Typeflag == tar.TypeSymlink && u.to.Links:
		return u.link(name, header.Linkname)
	}
	return fmt.Errorf("%w: %q is neither a file nor a directory", ErrHostile, header.Name)
}

// take counts an entry with so much content, and refuses what is too much.
func (u *unpacker) take(size int64) error {
	if u.left -= EntryBytes; size > u.left || u.left < 0 {
		return fmt.Errorf("%w: more than %d MiB", ErrTooLarge, u.most>>20)
	}
	u.left -= size
	return u.room(EntryBytes + size)
}

// room reports whether the target still takes so much.
func (u *unpacker) room(size int64) error {
	if u.to.Room == nil {
		return nil
	}
	return u.to.Room(size)
}

// place is where an entry goes, below the root.
func (u *unpacker) place(name string) (string, error) {
	clean := path.Clean(name)
	if len(name) > MaxName || !fs.ValidPath(clean) || strings.ContainsRune(name, 0) || strings.Count(clean, "/") >= MaxDepth {
		return "", fmt.Errorf("%w: name %.60q", ErrHostile, name)
	}
	if u.to.Rename == "" {
		return clean, nil
	}
	_, rest, _ := strings.Cut(clean, "/")
	return path.Join(u.to.Rename, rest), nil
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
	err = u.content(f)
	mode := fs.FileMode(header.Mode) & 0o755
	if err := errors.Join(err, f.Chmod(mode|0o600), f.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, time.Time{}, header.ModTime)
}

// content writes the content of an entry.
func (u *unpacker) content(f *os.File) error {
	for {
		n, err := io.CopyN(f, u.archive, roomStep)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && n == roomStep {
			err = u.room(0)
		}
		if err != nil {
			return err
		}
	}
}
