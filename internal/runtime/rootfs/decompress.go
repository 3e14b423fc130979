package rootfs

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is how much memory a zstd stream may ask for: what its command line
// tool makes at most without being told to.
const maxWindow = 128 << 20

// decompress recognises gzip and zstd by how they begin; anything else is taken
// as it is.
func decompress(r io.Reader) (io.Reader, func(), error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	start, err := buffered.Peek(4)
	switch {
	case isGzip(start):
		z, err := gzip.NewReader(buffered)
		return z, func() {}, err
	case isZstd(start):
		z, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	case err != nil && err != io.EOF:
		return nil, nil, err
	}
	return buffered, func() {}, nil
}

func isGzip(start []byte) bool       { return bytes.HasPrefix(start, []byte{0x1f, 0x8b}) }
func isZstd(start []byte) bool       { return bytes.HasPrefix(start, []byte{0x28, 0xb5, 0x2f, 0xfd}) }
func isCompressed(start []byte) bool { return isGzip(start) || isZstd(start) }

// meter counts and hashes what passes, and stops at a limit.
type meter struct {
	io.Reader
	ctx  context.Context
	sum  hash.Hash // nil: not wanted
	n    int64
	stop func(n int64) error // nil: no limit
	seen func(n int)         // called with the bytes read; may be nil
	over error               // why it stopped
}

func (m *meter) Read(p []byte) (int, error) {
	if m.ctx.Err() != nil {
		m.over = context.Cause(m.ctx)
		return 0, m.over
	}
	n, err := m.Reader.Read(p)
	m.n += int64(n)
	if m.sum != nil {
		_, _ = m.sum.Write(p[:n])
	}
	if m.seen != nil {
		m.seen(n)
	}
	if m.stop != nil && n > 0 {
		if m.over = m.stop(m.n); m.over != nil {
			return n, m.over
		}
	}
	return n, err
}

func (m *meter) digest() string { return "sha256:" + hex.EncodeToString(m.sum.Sum(nil)) }

// archive is the uncompressed content of a layer, metered on both sides of the
// decompression.
type archive struct {
	io.Reader
	packed, plain *meter
	close         func()
}

// Read gives the reason why the blob was not read any further, in place of what
// a decoder makes of that.
func (a *archive) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = cmp.Or(a.packed.over, err)
	}
	return n, err
}

// openArchive starts reading a layer's blob.
func (s *Store) openArchive(ctx context.Context, blob io.Reader, image *usage, seen func(int)) (*archive, error) {
	packed := &meter{Reader: blob, ctx: ctx, sum: sha256.New(), seen: seen, stop: s.Limits.tooLong} // it may uncompress to nothing, for ever
	unpacked, done, err := decompress(packed)
	if err != nil {
		return nil, truncated(err)
	}
	a := &archive{packed: packed, close: done}
	a.plain = &meter{Reader: unpacked, ctx: ctx, sum: sha256.New(), stop: func(n int64) error { return s.Limits.expands(n, packed.n) }}
	a.Reader = &meter{Reader: a.plain, ctx: ctx, seen: func(n int) { image.stream.Add(int64(n)) }, stop: func(int64) error {
		return s.Limits.tooLong(image.stream.Load())
	}}
	return a, nil
}
