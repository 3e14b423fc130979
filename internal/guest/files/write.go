package files

import (
	"crypto/rand"
	"errors"
	"io"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/maxprocs"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	defaultFileMode = 0o644
	defaultDirMode  = 0o755
	// tempPrefix begins the names of files that are being written. One is left behind
	// only if the sandbox is killed during a write.
	tempPrefix = wire.TemporaryPrefix
)

// write replaces a file by the content that the host sends. It answers when the file
// is closed: a program that is open for writing cannot be executed.
func (c *Call) write(f *wire.File) error {
	return wire.WithPart(f.Write, func(w *wire.FileWrite) error {
		written, err := c.replace(&f.RootedPath, w)
		if err != nil {
			return err
		}
		return c.result(written)
	})
}

// replace is write without its answer.
func (c *Call) replace(p *wire.RootedPath, w *wire.FileWrite) (written *wire.FileWritten, err error) {
	d := &tempFile{files: c.files, options: *w}
	if err := d.files.do(func() error { return d.create(p) }); err != nil {
		return nil, err
	}
	defer d.files.do(d.discard) //nolint:errcheck // it always succeeds
	if err := d.fill(c.Content()); err != nil {
		return nil, err
	}
	err = d.files.do(func() (err error) { written, err = d.publish(); return err })
	return written, err
}

// tempFile is a file that is written under a temporary name in its directory and then
// renamed.
type tempFile struct {
	files   *Server
	options wire.FileWrite
	mtime   int64 // ns; 0: now

	loc  *location
	old  *fileInfo // nil: there was no file
	temp string    // "" once it is renamed or removed
	fd   int
}

// create checks the file that is to be replaced and creates the temporary one.
func (d *tempFile) create(p *wire.RootedPath) error {
	loc, err := d.files.locateWritable(p, d.options.MkdirAll)
	if err != nil {
		return err
	}
	return d.createAt(loc)
}

// createAt is create at a location, which discard closes.
func (d *tempFile) createAt(loc *location) error {
	d.loc, d.fd = loc, -1
	err := d.check()
	if err == nil {
		d.temp = tempPrefix + rand.Text()
		d.fd, err = loc.dir.open(d.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	}
	if err != nil {
		d.temp = ""
		_ = d.discard()
		return fileError(err)
	}
	return nil
}

// check refuses to replace a file that is not regular, not writable or not in the
// expected version.
func (d *tempFile) check() error {
	old, err := statAt(d.loc.dir.fd, d.loc.name)
	switch {
	case errors.Is(err, unix.ENOENT):
		d.old = nil
		return d.files.requireVersion(d.loc, nil, d.options.IfVersion)
	case err != nil:
		return fileError(err)
	case d.options.Exclusive:
		return refuse(wire.CodeFileExists)
	}
	if err := old.refuseIrregular(); err != nil {
		return err
	}
	// The rename would ignore the permissions of the file that it replaces.
	if err := unix.Faccessat(d.loc.dir.fd, d.loc.name, unix.W_OK, 0); err != nil {
		return fileError(err)
	}
	d.old = old
	return d.files.requireVersion(d.loc, old, d.options.IfVersion)
}

// contents are buffers between the wire and a file.
var contents = sync.Pool{New: func() any { return new([wire.DataFrame]byte) }}

// fill writes content to the temporary file.
func (d *tempFile) fill(content io.Reader) error {
	c := contents.Get().(*[wire.DataFrame]byte)
	defer contents.Put(c)
	total := 0
	defer func() { d.files.procs.ReleaseIf(total >= maxprocs.LargeTransfer) }()
	for {
		n, err := content.Read(c[:])
		d.files.procs.RaiseIf(total < maxprocs.LargeTransfer && total+n >= maxprocs.LargeTransfer)
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

// publish renames the temporary file to its final name.
func (d *tempFile) publish() (*wire.FileWritten, error) {
	if d.options.IfVersion != "" { // the file may have changed during the transfer
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
		if err := d.loc.dir.sync(); err != nil {
			return nil, fileError(err)
		}
	}
	return d.written()
}

// finish sets mode and time, and syncs the file if asked to.
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

// rename replaces the file, or with Exclusive fails if there is one.
func (d *tempFile) rename() error {
	dir := d.loc.dir.fd
	var err error
	if d.options.Exclusive {
		err = renameNoReplace(dir, d.temp, dir, d.loc.name)
	} else {
		err = unix.Renameat(dir, d.temp, dir, d.loc.name)
	}
	if err == nil {
		d.temp = ""
	}
	return err
}

// renameNoReplace renames and fails if the new name exists. On file systems without
// RENAME_NOREPLACE it links and unlinks.
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

// written returns the attributes of the new file, or fails if another file has its name
// by now.
func (d *tempFile) written() (*wire.FileWritten, error) {
	mine, err := statAt(d.fd, "")
	if err != nil {
		return nil, fileError(err)
	}
	there, err := statAt(d.loc.dir.fd, d.loc.name)
	if err != nil || !there.same(mine) {
		return nil, refuse(wire.CodeChanged)
	}
	written := &wire.FileWritten{FileStat: *there.wireStat(), Created: d.old == nil}
	written.Version = d.files.versionAt(d.loc, there)
	return written, nil
}

// discard removes a temporary file that was not published, and closes descriptors.
func (d *tempFile) discard() error {
	if d.temp != "" {
		_ = unix.Unlinkat(d.loc.dir.fd, d.temp, 0)
		d.temp = ""
	}
	if d.fd >= 0 {
		unix.Close(d.fd)
		d.fd = -1
	}
	d.loc.close()
	return nil
}

// sync syncs the directory itself.
func (d *dir) sync() error {
	fd, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Fsync(fd)
}
