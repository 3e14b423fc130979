package guestfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// MaxRead bounds what Read holds in memory. Open has no such bound.
	MaxRead = 64 << 20
	// smallTransfer is what travels with the commands; more takes the wire for
	// large things.
	smallTransfer = 64 << 10
	// preallocSize bounds the memory that is allocated before bytes arrive.
	preallocSize = 1 << 20
	// growth is by how much more when that much has come.
	growth = 4
)

// Stat describes a file of any kind. Of a symbolic link it describes the link
// itself; the directories above must be real ones.
func (f *Files) Stat(ctx context.Context, path string) (*FileInfo, error) {
	var stat wire.FileStat
	if err := f.call(ctx, path, &fileCall{op: wire.OpFileStat}, &stat); err != nil {
		return nil, operation("stat", path, err)
	}
	info, err := infoOf(path, &stat)
	return info, operation("stat", path, f.machine.BrokenIf(err))
}

// Read reads a file, or a part of it, into memory.
func (f *Files) Read(ctx context.Context, path string, options *ReadOptions) (*Content, error) {
	o := ReadOptions{}
	if options != nil {
		o = *options
	}
	if o.Limit == 0 || o.Limit > MaxRead {
		o.Limit = MaxRead
	}
	var content *Content
	err := retryOnce(ctx, func() error {
		r, err := f.open(ctx, path, &o)
		if err != nil {
			return err
		}
		defer r.Close()
		content, err = r.content()
		return err
	})
	return content, operation("read", path, err)
}

// Open begins to read a file, or a part of it. The reader must be closed; it
// ends with ctx.
func (f *Files) Open(ctx context.Context, path string, options *ReadOptions) (*FileReader, error) {
	if options == nil {
		options = &ReadOptions{}
	}
	var r *FileReader
	err := retryOnce(ctx, func() (err error) { r, err = f.open(ctx, path, options); return err })
	return r, operation("read", path, err)
}

func (f *Files) open(ctx context.Context, path string, options *ReadOptions) (*FileReader, error) {
	place, err := f.resolve(path)
	if err != nil {
		return nil, err
	}
	if options.Limit < 0 {
		return nil, fmt.Errorf("%w: negative limit", machine.ErrInvalid)
	}
	o := &machine.OpRequest{Direct: true, Request: &wire.Request{Op: wire.OpFileRead, File: &wire.File{
		RootedPath: place, Read: &wire.FileRead{Offset: options.Offset, Limit: options.Limit},
	}}}
	if options.Limit > 0 && options.Limit <= smallTransfer {
		o.Small = true
	}
	op, err := f.machine.OpenOp(ctx, o)
	if err != nil {
		return nil, err
	}
	op.SentAll = true
	r, err := newFileReader(op, path, options)
	if err != nil {
		op.Close()
		return nil, err
	}
	return r, nil
}

// FileReader reads a part of a file. If the file shrinks meanwhile it ends with
// ErrChanged; if it grows, where it ended when it was opened.
type FileReader struct {
	Info   FileInfo // as it was when it was opened
	Offset int64    // where the part begins
	Size   int64    // bytes of the part

	op   *machine.StreamOp
	data *wire.Data
	left int64
	err  error // how it ended
}

func newFileReader(op *machine.StreamOp, path string, options *ReadOptions) (*FileReader, error) {
	var stat wire.FileStat
	if err := op.Answer(wire.FrameResult, &stat); err != nil {
		return nil, err
	}
	info, err := infoOf(path, &stat)
	if err != nil {
		return nil, op.Violation("%v", err)
	}
	if info.Kind != KindFile || stat.Offset < 0 || stat.Offset > info.Size || options.Offset >= 0 && stat.Offset > options.Offset {
		return nil, op.Violation("a part at %d of a %s of %d bytes", stat.Offset, info.Kind, info.Size)
	}
	size := info.Size - stat.Offset
	if options.Limit > 0 {
		size = min(size, options.Limit)
	}
	return &FileReader{Info: *info, Offset: stat.Offset, Size: size, left: size, op: op, data: op.Frames.Data()}, nil
}

// Read implements io.Reader.
func (r *FileReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n := 0
	err := r.op.ReadWithin(func() (err error) { n, err = r.data.Read(p); return err })
	switch {
	case int64(n) > r.left:
		n, err = 0, r.op.Violation("more bytes of a file than it has")
	case errors.Is(err, io.EOF) && r.left > 0:
		err = operation("read", r.Info.Path, machine.ErrChanged)
	case err != nil && !errors.Is(err, io.EOF):
		err = operation("read", r.Info.Path, r.op.ErrorFor(err))
	}
	r.left -= int64(n)
	r.err = err
	r.op.Complete = r.op.Complete || r.data.Ended()
	return n, err
}

// WriteTo implements io.WriterTo, in large steps.
func (r *FileReader) WriteTo(w io.Writer) (int64, error) {
	buf := transferBuffers.Get().(*transferBuffer)
	defer transferBuffers.Put(buf)
	return io.CopyBuffer(w, struct{ io.Reader }{r}, buf[:])
}

// Close ends reading, also in the middle of the file.
func (r *FileReader) Close() error {
	r.op.Close()
	return nil
}

// content reads everything. Memory is taken as bytes arrive.
func (r *FileReader) content() (*Content, error) {
	c := &Content{Info: r.Info, Offset: r.Offset, More: r.Offset+r.Size < r.Info.Size}
	c.Data = make([]byte, 0, min(r.Size, preallocSize)+1)
	for {
		if len(c.Data) == cap(c.Data) {
			grown := make([]byte, len(c.Data), min(growth*int64(cap(c.Data)), r.Size+1))
			copy(grown, c.Data)
			c.Data = grown
		}
		n, err := r.Read(c.Data[len(c.Data):cap(c.Data)])
		c.Data = c.Data[:len(c.Data)+n]
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// infoOf converts a stat. An impossible one is an ErrProtocol.
func infoOf(path string, s *wire.FileStat) (*FileInfo, error) {
	switch {
	case !s.Kind.Known():
		return nil, fmt.Errorf("%w: file of an unknown kind", wire.ErrProtocol)
	case s.Size < 0:
		return nil, fmt.Errorf("%w: file of %d bytes", wire.ErrProtocol, s.Size)
	case len(s.Version) > maxVersion || len(s.Target) > wire.MaxPath:
		return nil, fmt.Errorf("%w: overlong file attributes", wire.ErrProtocol)
	}
	return &FileInfo{
		Path: path, Kind: s.Kind, Size: s.Size, Mode: fs.FileMode(s.Mode) & fs.ModePerm,
		ModTime: time.Unix(0, s.MtimeNs), UID: int(s.UID), GID: int(s.GID), Links: int(min(s.Links, 1<<30)),
		Mount: s.Mount, Version: Version(s.Version), Target: string(s.Target),
	}, nil
}

// maxVersion bounds the text of a version.
const maxVersion = 256
