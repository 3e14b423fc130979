package guestfs

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxEvents bounds the events of one message.
	maxEvents = 1024
)

// Watch begins to watch a directory. Changes after it returned are reported.
// The watcher must be closed; it ends with ctx.
func (f *Files) Watch(ctx context.Context, path string, options *WatchOptions) (*Watcher, error) {
	place, err := f.resolve(path)
	if err != nil {
		return nil, operation("watch", path, err)
	}
	scan := &wire.FileScan{Recursive: options != nil && options.Recursive, MaxEntries: wire.MaxWatched, MaxDepth: wire.MaxDepth}
	var op *machine.StreamOp
	err = retryOnce(ctx, func() (err error) {
		op, err = f.machine.OpenOp(ctx, &machine.OpRequest{
			Watch: true, Request: &wire.Request{Op: wire.OpFileWatch, File: &wire.File{RootedPath: place, Scan: scan}},
		})
		if err != nil {
			return err
		}
		if err = op.Answer(wire.FrameStarted, &struct{}{}); err != nil {
			op.Close()
		}
		return err
	})
	if err != nil {
		return nil, operation("watch", path, err)
	}
	op.NoTimeout() // nothing may happen for long
	return &Watcher{op: op, path: path}, nil
}

// Watcher reports changes. It is not safe for concurrent use, but for Close.
type Watcher struct {
	op   *machine.StreamOp
	path string
}

// Next waits for changes. A watch whose wire broke is over: its error is
// ErrLost, and a new one does not report what happened in between.
func (w *Watcher) Next() ([]FileEvent, error) {
	frame, err := w.op.Frames.Frame()
	switch {
	case err != nil:
		return nil, operation("watch", w.path, w.op.ErrorFor(err))
	case frame.Type == wire.FrameError:
		return nil, operation("watch", w.path, w.op.ErrorFrame(frame))
	case frame.Type != wire.FrameEvents:
		return nil, w.op.UnexpectedFrame(frame)
	}
	var told []wire.FileEvent
	if err := w.op.Decode(frame, &told); err != nil {
		return nil, err
	}
	events, err := eventsOf(told)
	if err != nil {
		return nil, w.op.Broken(err)
	}
	return events, nil
}

// Close ends the watch.
func (w *Watcher) Close() error {
	w.op.Close()
	return nil
}

// eventsOf converts events. Impossible ones are an ErrProtocol.
func eventsOf(told []wire.FileEvent) ([]FileEvent, error) {
	if len(told) == 0 || len(told) > maxEvents {
		return nil, fmt.Errorf("%w: %d events at once", wire.ErrProtocol, len(told))
	}
	events := make([]FileEvent, len(told))
	for i, e := range told {
		what := Change(e.What)
		switch what {
		case FileCreated, FileWritten, FileRemoved, FileAttributes, FileLost:
		default:
			return nil, fmt.Errorf("%w: event %.20q", wire.ErrProtocol, e.What)
		}
		if err := checkBelow(string(e.Path)); err != nil && e.Path != "." {
			return nil, err
		}
		events[i] = FileEvent{string(e.Path), what, e.Dir}
	}
	return events, nil
}
