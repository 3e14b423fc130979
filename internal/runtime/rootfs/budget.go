package rootfs

import (
	"archive/tar"
	"fmt"
	"io"
	"sync/atomic"
)

// usage is what the layers of one image have used so far. Layers are unpacked
// side by side.
type usage struct{ bytes, files, stream atomic.Int64 }

// count keeps an image within its limits before anything is written for it.
func (u *unpacker) count(h *tar.Header) error {
	u.own.files.Add(1)
	if err := u.oneMore(); err != nil {
		return err
	}
	if err := u.limits.tooLong(h.Size); err != nil {
		return err
	}
	if !isFile(h) {
		return nil
	}
	u.own.bytes.Add(h.Size)
	return u.limits.tooLong(u.image.bytes.Add(h.Size))
}

// oneMore counts an entry, or a directory that the archive takes for granted:
// one name of an archive can imply hundreds.
func (u *unpacker) oneMore() error {
	if n := u.image.files.Add(1); n > u.limits.Files {
		return fmt.Errorf("%w: %d files", ErrTooMuch, u.limits.Files)
	}
	return nil
}

func isFile(h *tar.Header) bool { return h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse }

// budget writes to a file what its blob may expand to. Archives can describe
// holes, so what is written may be far more than what was uncompressed.
type budget struct {
	file io.Writer
	of   *unpacker
}

func (b budget) Write(p []byte) (int, error) {
	n := b.of.own.stream.Add(int64(len(p)))
	if err := b.of.limits.expands(n, b.of.packed.n); err != nil {
		return 0, err
	}
	return b.file.Write(p)
}

func (l Limits) tooLong(n int64) error {
	if n > l.Size {
		return fmt.Errorf("%w: %d bytes", ErrTooMuch, l.Size)
	}
	return nil
}

// expands refuses what comes of too little.
func (l Limits) expands(n, packed int64) error {
	if n > l.RatioFree && n/l.Ratio > packed {
		return fmt.Errorf("%w: expands more than %d times", ErrTooMuch, l.Ratio)
	}
	return nil
}
