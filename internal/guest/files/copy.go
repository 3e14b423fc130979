package files

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
)

// copyStep is how many bytes are copied by one system call at most.
const copyStep = 8 << 20

// copy copies a file or a directory tree.
func (c *Call) copy(f *wire.File) error {
	if f.Change == nil || f.Scan == nil || f.To == nil {
		return wire.Fail(wire.CodeInvalid, "the request lacks its operands")
	}
	k := &copyOp{files: c.files, budget: newBudget(f.Scan), noReplace: f.Change.NoReplace}
	if err := k.run(f); err != nil {
		return err
	}
	return c.result(k.FileEnd)
}

// copyOp is one copy that runs.
type copyOp struct {
	totals
	files     *Server
	budget    *budget
	noReplace bool
	failure   error
}

func (k *copyOp) run(f *wire.File) error {
	var from, to *location
	n := &walkEntry{}
	err := k.files.do(func() (err error) {
		if from, err = k.files.locate(&f.RootedPath); err != nil {
			return err
		}
		if n.info, err = from.stat(); err != nil {
			return err
		}
		to, err = k.files.locateWritable(f.To, f.Change.MkdirAll)
		return err
	})
	if from != nil {
		defer from.release()
	}
	if to != nil {
		defer to.release()
	}
	switch {
	case err != nil:
		return err
	case n.info.kind() != wire.KindDir:
		n.location = *from
		return k.file(n, to)
	case !f.Change.Recursive:
		return refuse(wire.CodeIsDir)
	case f.Root == f.To.Root && strings.HasPrefix(string(f.To.Path)+"/", string(f.Path)+"/"), f.Path == "." && f.Root == f.To.Root:
		return wire.Fail(wire.CodeInvalid, "a directory cannot be copied into itself")
	}
	return k.tree(from, to)
}

// tree copies a directory tree.
func (k *copyOp) tree(from, to *location) error {
	var source, target *dir
	err := k.files.do(func() (err error) {
		if source, err = from.openDir(); err != nil {
			return err
		}
		if k.noReplace {
			if err := unix.Mkdirat(to.dir.fd, to.name, defaultDirMode); err != nil {
				return fileError(err)
			}
		}
		target, err = to.dir.makeAll(to.name, defaultDirMode)
		return err
	})
	if source != nil {
		defer source.release()
	}
	if err != nil {
		return err
	}
	defer target.release()
	k.Dirs++
	w := &walker{files: k.files, budget: k.budget, visit: func(n *walkEntry) error { return k.visit(n, target) }, refused: k.fail}
	if err := w.walk(source, "", 1); err != nil {
		return err
	}
	return k.failure
}

// fail remembers the first file that could not be copied.
func (k *copyOp) fail(name string, err error) {
	if k.failure == nil {
		k.failure = withSubject(name, err)
	}
}

// visit copies one entry of the walk.
func (k *copyOp) visit(n *walkEntry, target *dir) error {
	if k.failure != nil {
		return k.failure
	}
	if n.info.kind() == wire.KindDir && !n.info.mount {
		k.Dirs++
		return k.files.do(func() error {
			d, err := target.makeAll(n.path, n.info.mode|0o700)
			if err == nil {
				d.close()
			}
			return err
		})
	}
	above, base := path.Split(n.path)
	var to *location
	err := k.files.do(func() error {
		d, err := target.descend(path.Clean("./" + above))
		to = &location{dir: d, name: base}
		return err
	})
	if err != nil {
		return err
	}
	defer to.release()
	if err := k.file(n, to); err != nil {
		k.fail(n.path, err)
		return k.failure
	}
	return nil
}

// file copies one regular file.
func (k *copyOp) file(n *walkEntry, to *location) error {
	fd, err := k.files.open(n, (*fileInfo).refuseIrregular)
	if err != nil {
		return err
	}
	defer k.files.close(fd)
	d := &tempFile{
		files: k.files, mtime: n.info.mtime,
		options: wire.FileWrite{Exclusive: k.noReplace, Mode: n.info.mode & 0o777},
	}
	err = k.files.do(func() error {
		handle, err := to.dir.descend(".")
		if err != nil {
			return err
		}
		return d.createAt(&location{dir: handle, name: to.name})
	})
	if err != nil {
		return err
	}
	defer k.files.do(d.discard) //nolint:errcheck // it always succeeds
	if err := k.budget.spendBytes(n.info.size); err != nil {
		return err
	}
	if err := k.content(fd, d.fd, n.info.size); err != nil {
		return fileError(err)
	}
	k.Files++
	k.Bytes += n.info.size
	return k.files.do(func() error { _, err := d.publish(); return err })
}

// content copies size bytes and leaves holes.
func (k *copyOp) content(from, to int, size int64) error {
	for offset := int64(0); offset < size; {
		err := k.files.do(func() (err error) { offset, err = copySome(from, to, offset, size); return err })
		if err == nil {
			err = k.budget.checkTime()
		}
		if err != nil {
			return err
		}
	}
	return unix.Ftruncate(to, size)
}

// copySome copies the next data from offset on and returns where it ended.
func copySome(from, to int, offset, size int64) (int64, error) {
	start, err := unix.Seek(from, offset, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // nothing but a hole
		return size, nil
	}
	if err != nil {
		start = offset
	}
	end := size
	if hole, err := unix.Seek(from, start, unix.SEEK_HOLE); err == nil {
		end = min(end, hole)
	}
	if start >= end {
		return size, nil
	}
	length := int(min(end-start, copyStep))
	in, out := start, start
	n, err := unix.CopyFileRange(from, &in, to, &out, length, 0)
	if err == nil && n > 0 {
		return start + int64(n), nil
	}
	return copyByHand(from, to, start, end)
}

// copyByHand copies by read and write, where copy_file_range fails.
func copyByHand(from, to int, start, end int64) (int64, error) {
	c := buffer.Get()
	defer buffer.Put(c)
	n, err := pread(from, c[:min(int64(len(c)), end-start)], start)
	if err != nil {
		return start, err
	}
	if n == 0 { // it has shrunk
		return start, refuse(wire.CodeChanged)
	}
	for written := 0; written < n; {
		w, err := unix.Pwrite(to, c[written:n], start+int64(written))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return start, err
		}
		written += max(w, 0)
	}
	return start + int64(n), nil
}
