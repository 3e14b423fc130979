package guest

import (
	"crypto/rand"
	"errors"
	"io"
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	defaultFileMode = 0o644
	defaultDirMode  = 0o755
	// tempPrefix begins the names of files that are not complete. One is left
	// behind only if the sandbox is killed in the middle of a write.
	tempPrefix = ".atoll-tmp-"
)

// fileWrite replaces a file by what the host sends.
func (c *fileCall) fileWrite(f *wire.File) error {
	return wire.WithPart(f.Write, func(w *wire.FileWrite) error {
		d := &tempFile{files: c.files, options: *w}
		if err := d.files.do(func() error { return d.begin(&f.RootedPath) }); err != nil {
			return err
		}
		defer d.files.do(d.discard) //nolint:errcheck // it is gone, or nobody's
		if err := d.fill(c.content()); err != nil {
			return err
		}
		var written *wire.FileWritten
		err := d.files.do(func() (err error) { written, err = d.publish(); return err })
		if err != nil {
			return err
		}
		return c.result(written)
	})
}

// tempFile is a file that is being written under another name beside its own.
type tempFile struct {
	files   *fileServer
	options wire.FileWrite
	mtime   int64 // ns; 0: now

	spot *location
	old  *fileInfo // nil: there was nothing
	temp string    // "" once it is gone
	fd   int
}

// begin checks what is there and makes the draft.
func (d *tempFile) begin(p *wire.RootedPath) error {
	spot, err := d.files.locateToChange(p, d.options.MkdirAll)
	if err != nil {
		return err
	}
	return d.beginAt(spot)
}

// beginAt takes over spot.
func (d *tempFile) beginAt(spot *location) error {
	d.spot, d.fd = spot, -1
	err := d.check()
	if err == nil {
		d.temp = tempPrefix + rand.Text()
		d.fd, err = spot.dir.open(d.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	}
	if err != nil {
		d.temp = ""
		_ = d.discard()
		return fileError(err)
	}
	return nil
}

// check looks at what is to be replaced, and refuses it if it must not be.
func (d *tempFile) check() error {
	old, err := statAt(d.spot.dir.fd, d.spot.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		d.old = nil
		return d.files.requireVersion(d.spot, nil, d.options.IfVersion)
	case err != nil:
		return fileError(err)
	case d.options.Exclusive:
		return refuse(wire.CodeFileExists)
	}
	if err := old.refuseIrregular(); err != nil {
		return err
	}
	// A new file under the old name would ignore the old one's permissions.
	if err := unix.Faccessat(d.spot.dir.fd, d.spot.name, unix.W_OK, 0); err != nil {
		return fileError(err)
	}
	d.old = old
	return d.files.requireVersion(d.spot, old, d.options.IfVersion)
}

// contents are buffers between the wire and a file.
var contents = sync.Pool{New: func() any { return new([wire.DataFrame]byte) }}

// fill writes all that comes from content.
func (d *tempFile) fill(content io.Reader) error {
	c := contents.Get().(*[wire.DataFrame]byte)
	defer contents.Put(c)
	total := 0
	defer func() { d.files.procs.releaseIf(total >= largeTransfer) }()
	for {
		n, err := content.Read(c[:])
		d.files.procs.raiseIf(total < largeTransfer && total+n >= largeTransfer)
		total += n
		if n > 0 {
			if err := d.files.do(func() error { return writeAll(d.fd, c[:n]) }); err != nil {
				return fileError(err)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return wire.Fail(wire.CodeInvalid, "the content did not come to its end")
		}
	}
}

func writeAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// publish gives the draft its name.
func (d *tempFile) publish() (*wire.FileWritten, error) {
	if d.options.IfVersion != "" { // it took time to get here
		if err := d.check(); err != nil {
			return nil, err
		}
	}
	if err := d.finish(); err != nil {
		return nil, fileError(err)
	}
	if err := d.rename(); err != nil {
		return nil, fileError(err)
	}
	if d.options.Sync {
		if err := d.spot.dir.sync(); err != nil {
			return nil, fileError(err)
		}
	}
	return d.outcome()
}

// finish sets the draft's attributes, and has it on disk if asked to.
func (d *tempFile) finish() error {
	if err := unix.Fchmod(d.fd, d.mode()); err != nil {
		return err
	}
	if d.mtime != 0 {
		when := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(d.mtime)}
		if err := futimens(d.fd, when); err != nil {
			return err
		}
	}
	if d.options.Sync {
		return unix.Fsync(d.fd)
	}
	return nil
}

func (d *tempFile) mode() uint32 {
	switch {
	case d.options.Mode != 0:
		return d.options.Mode & 0o777
	case d.old != nil:
		return d.old.mode & 0o777
	}
	return defaultFileMode
}

// rename puts the draft in its place.
func (d *tempFile) rename() error {
	dir := d.spot.dir.fd
	var err error
	if d.options.Exclusive {
		err = renameNoReplace(dir, d.temp, dir, d.spot.name)
	} else {
		err = unix.Renameat(dir, d.temp, dir, d.spot.name)
	}
	if err == nil {
		d.temp = ""
	}
	return err
}

// renameNoReplace renames what must not replace anything. File systems that
// cannot promise it get a second name and lose the first.
func renameNoReplace(fromDir int, from string, toDir int, to string) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	if err := unix.Linkat(fromDir, from, toDir, to, 0); err != nil {
		return err
	}
	return unix.Unlinkat(fromDir, from, 0)
}

// outcome tells what is there now, if it is what was written: somebody else may
// have taken the name of the draft, or of the file, since.
func (d *tempFile) outcome() (*wire.FileWritten, error) {
	mine, err := statAt(d.fd, "")
	if err != nil {
		return nil, fileError(err)
	}
	there, err := statAt(d.spot.dir.fd, d.spot.name)
	if err != nil || !there.same(mine) {
		return nil, refuse(wire.CodeChanged)
	}
	written := &wire.FileWritten{FileStat: *there.stat(), Created: d.old == nil}
	written.Version = d.files.versionAt(d.spot, there)
	return written, nil
}

// discard removes a draft that was not published, and lets go of everything.
func (d *tempFile) discard() error {
	if d.temp != "" {
		_ = unix.Unlinkat(d.spot.dir.fd, d.temp, 0)
		d.temp = ""
	}
	if d.fd >= 0 {
		unix.Close(d.fd)
		d.fd = -1
	}
	d.spot.close()
	return nil
}

// sync has a directory's names on disk.
func (d *dir) sync() error {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}
