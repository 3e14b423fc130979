package rootfs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// Why a layer is refused. Every refusal wraps one of these, or an error of the
// system or of a decoder.
var (
	ErrEscapes   = errors.New("leads out of the image")
	ErrLinked    = errors.New("passes through a symbolic link")
	ErrDevice    = errors.New("is a device node")
	ErrKind      = errors.New("is of a kind that images do not have")
	ErrTooMuch   = errors.New("more than an image may have")
	ErrDigest    = errors.New("content does not match its digest")
	ErrTruncated = errors.New("ends too early")
	ErrConflict  = errors.New("is in the way of another entry")
	ErrBadName   = errors.New("is not a name that an image may hold")
)

// unpacker writes the archive of one layer below a directory that no other process
// knows yet. What it writes belongs to the caller, has no setuid bit, no device
// and no extended attribute of the archive's.
type unpacker struct {
	tree   *tree
	limits Limits
	packed *meter // what was read of the blob
	image  *usage // of all layers
	own    usage  // of this one
	buffer []byte
	stamps stamps
}

// unpack writes what the archive holds and reads it to its end.
func unpack(ctx context.Context, archive *archive, root *os.File, limits Limits, image *usage) (Layer, error) {
	u := &unpacker{limits: limits, packed: archive.packed, image: image, buffer: make([]byte, 256<<10)}
	u.stamps.room = limits.Names
	u.tree = &tree{root: root, made: u.oneMore}
	defer u.tree.close()
	reader := tar.NewReader(archive)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(ctx.Err(), truncated(err)); err != nil {
			return Layer{}, err
		}
		if err := u.entry(header, reader); err != nil {
			return Layer{}, fmt.Errorf("%.200q: %w", header.Name, err)
		}
	}
	// Padding after the end counts for the digest.
	if _, err := io.CopyBuffer(io.Discard, onlyReader{archive}, u.buffer); err != nil {
		return Layer{}, truncated(err)
	}
	return Layer{Size: u.own.bytes.Load(), Files: u.own.files.Load(), Opaque: u.tree.opaqueTop}, u.stamps.set(u.tree)
}

type onlyReader struct{ io.Reader }

func truncated(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTruncated
	}
	return err
}

// entry writes one entry.
func (u *unpacker) entry(h *tar.Header, data io.Reader) error {
	if err := u.count(h); err != nil {
		return err
	}
	name, err := u.clean(h.Name)
	if err != nil {
		return err
	}
	switch {
	case h.Typeflag == tar.TypeXGlobalHeader:
		return nil
	case name == ".":
		return u.top(h)
	case strings.HasPrefix(path.Base(name), whiteoutPrefix):
		return u.tree.whiteout(name)
	}
	if strings.Contains("/"+name, "/"+whiteoutPrefix) {
		return fmt.Errorf("a whiteout %w", ErrConflict)
	}
	return u.write(name, h, data)
}

// clean turns the name of an entry into a path below the root, "." for the
// root itself. A leading slash is only a habit of some archivers.
func (u *unpacker) clean(name string) (string, error) {
	if len(name) > u.limits.Name {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrBadName, u.limits.Name)
	}
	if strings.ContainsRune(name, 0) {
		return "", ErrBadName
	}
	parts := 0
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return "", ErrEscapes
		case len(part) > unix.NAME_MAX:
			return "", fmt.Errorf("%w: %d bytes between two slashes", ErrBadName, len(part))
		case part != "" && part != ".":
			parts++
		}
	}
	if parts > u.limits.Depth {
		return "", fmt.Errorf("%w: %d directories deep", ErrBadName, parts)
	}
	return path.Clean("./" + strings.TrimLeft(name, "/")), nil
}

// top takes the mode of the root directory from its entry.
func (u *unpacker) top(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return ErrConflict
	}
	if err := u.stamps.add(".", h.ModTime); err != nil {
		return err
	}
	return unix.Fchmod(int(u.tree.root.Fd()), dirMode(h))
}

func (u *unpacker) write(name string, h *tar.Header, data io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.stamps.add(name, h.ModTime); err != nil {
			return err
		}
		return u.tree.mkdir(name, dirMode(h))
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.file(name, h, data)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > u.limits.Name || strings.ContainsRune(h.Linkname, 0) {
			return fmt.Errorf("link: %w", ErrBadName)
		}
		return u.tree.symlink(name, h.Linkname, h.ModTime)
	case tar.TypeLink:
		target, err := u.clean(h.Linkname)
		if err != nil {
			return fmt.Errorf("hard link to %.200q: %w", h.Linkname, err)
		}
		return u.tree.link(name, target)
	case tar.TypeFifo:
		return u.tree.fifo(name, fileMode(h))
	case tar.TypeChar, tar.TypeBlock:
		if h.Typeflag == tar.TypeChar && isUsualDevice(name) {
			return nil // left out: every sandbox has a /dev of its own
		}
		return ErrDevice
	}
	return fmt.Errorf("%w (%q)", ErrKind, h.Typeflag)
}

// isUsualDevice names the devices that images are built with, before anything
// is mounted on their /dev.
func isUsualDevice(name string) bool {
	switch name {
	case "dev/console", "dev/full", "dev/null", "dev/ptmx", "dev/random", "dev/tty", "dev/urandom", "dev/zero":
		return true
	}
	return false
}

// The owner can always read what it owns and work in its directories, whatever
// the archive says: sandboxes copy files up, and stores are emptied. Setuid bits
// do nothing in a sandbox, and must not be on a host.
func dirMode(h *tar.Header) uint32  { return uint32(h.Mode)&0o1777 | 0o700 }
func fileMode(h *tar.Header) uint32 { return uint32(h.Mode)&0o1777 | 0o400 }

func (u *unpacker) file(name string, h *tar.Header, data io.Reader) (err error) {
	f, err := u.tree.create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	n, err := io.CopyBuffer(budget{f, u}, onlyReader{data}, u.buffer)
	if err != nil {
		return truncated(err)
	}
	if n != h.Size {
		return ErrTruncated
	}
	if err := unix.Fchmod(int(f.Fd()), fileMode(h)); err != nil {
		return err
	}
	return u.tree.touch(name, h.ModTime)
}
