package guestfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// Write replaces a file's content, or makes the file. Others see the old
// content or the new, never a part; open descriptors keep the old file.
func (f *Files) Write(ctx context.Context, path string, content []byte, options *WriteOptions) (*WriteResult, error) {
	w, err := f.newWriting(path, options)
	if err != nil {
		return nil, operation("write", path, err)
	}
	var result *WriteResult
	attempt := func() (err error) { result, err = w.bytes(ctx, content); return err }
	if w.repeatable() {
		err = retryOnce(ctx, attempt)
	} else {
		err = attempt()
	}
	return result, operation("write", path, err)
}

// WriteFrom is Write for content of any length. It reads to the end of content,
// or to its first error, which leaves the file as it was.
func (f *Files) WriteFrom(ctx context.Context, path string, content io.Reader, options *WriteOptions) (*WriteResult, error) {
	w, err := f.newWriting(path, options)
	if err != nil {
		return nil, operation("write", path, err)
	}
	result, err := w.stream(ctx, func(data *wire.DataWriter) error { return copyData(data, content) })
	return result, operation("write", path, err)
}

// writing is a file about to be written.
type writing struct {
	machine *machine.Machine
	path    string
	request *wire.Request
}

func (f *Files) newWriting(path string, options *WriteOptions) (*writing, error) {
	if options == nil {
		options = &WriteOptions{}
	}
	place, err := f.resolve(path)
	if err != nil {
		return nil, err
	}
	if place.ReadOnly {
		return nil, machine.ErrReadOnly
	}
	if err := checkMode(options.Mode); err != nil {
		return nil, err
	}
	return &writing{f.machine, path, &wire.Request{Op: wire.OpFileWrite, File: &wire.File{RootedPath: place, Write: &wire.FileWrite{
		Mode: uint32(options.Mode), Exclusive: options.Exclusive, IfVersion: string(options.IfVersion),
		MkdirAll: options.MkdirAll, Sync: options.Sync,
	}}}}, nil
}

// checkMode refuses bits that are not permissions: set-user-ID
// files are not made here.
func checkMode(mode fs.FileMode) error {
	if mode&^fs.ModePerm != 0 {
		return fmt.Errorf("%w: mode %v has more than permissions", machine.ErrInvalid, mode)
	}
	return nil
}

// repeatable reports whether writing twice gives the same as once.
func (w *writing) repeatable() bool {
	return !w.request.File.Write.Exclusive && w.request.File.Write.IfVersion == ""
}

// bytes writes content from memory; if it is small, in one message.
func (w *writing) bytes(ctx context.Context, content []byte) (*WriteResult, error) {
	if len(content) > smallTransfer {
		return w.stream(ctx, func(data *wire.DataWriter) error {
			if _, err := data.Write(content); err != nil {
				return err
			}
			return data.End()
		})
	}
	var follow bytes.Buffer
	follow.Grow(len(content) + 3*wire.HeaderSize)
	data := wire.NewDataWriter(&follow)
	defer data.Close()
	_, _ = data.Write(content)
	_ = data.End()
	op, err := w.machine.OpenOp(ctx, &machine.OpRequest{Small: true, Direct: true, Request: w.request, Follow: follow.Bytes()})
	if err != nil {
		return nil, err
	}
	defer op.Close()
	op.SentAll = true
	var written wire.FileWritten
	if err := op.Answer(wire.FrameResult, &written); err != nil {
		return nil, err
	}
	return w.result(op, &written)
}

// stream writes what send sends.
func (w *writing) stream(ctx context.Context, send func(*wire.DataWriter) error) (*WriteResult, error) {
	op, err := w.machine.OpenOp(ctx, &machine.OpRequest{Direct: true, Request: w.request})
	if err != nil {
		return nil, err
	}
	defer op.Close()
	var written wire.FileWritten
	if err := op.SendContent(send, &written); err != nil {
		return nil, err
	}
	return w.result(op, &written)
}

func (w *writing) result(op *machine.StreamOp, written *wire.FileWritten) (*WriteResult, error) {
	info, err := infoOf(w.path, &written.FileStat)
	if err != nil {
		return nil, op.Violation("%v", err)
	}
	op.Complete = true
	return &WriteResult{*info, written.Created}, nil
}
