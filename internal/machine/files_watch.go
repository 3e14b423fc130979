package machine

import (
	"context"
	"fmt"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxWatches bounds the watches of one machine.
	maxWatches = 16
	// maxEvents bounds the events that one message is believed to bring.
	maxEvents = 1024
)

// Watch begins to watch a directory. What happens after it returned is told.
// The watcher must be closed; it ends with ctx.
func (f *Files) Watch(ctx context.Context, path string, options *WatchOptions) (*Watcher, error) {
	place, err := f.resolve(path)
	if err != nil {
		return nil, operation("watch", path, err)
	}
	scan := &wire.FileScan{Recursive: options != nil && options.Recursive, MaxEntries: wire.MaxWatched, MaxDepth: wire.MaxDepth}
	var t *streamOp
	if len(f.machine.watches) == cap(f.machine.watches) {
		return nil, operation("watch", path, fmt.Errorf("%w: %d watches", ErrBusy, maxWatches))
	}
	err = retryOnce(ctx, func() (err error) {
		t, err = f.machine.openOp(ctx, &opRequest{
			dialer: f.machine.bulk, slots: f.machine.watches, request: &wire.Request{Op: wire.OpFileWatch, File: &wire.File{RootedPath: place, Scan: scan}},
		})
		if err != nil {
			return err
		}
		if err = t.answer(wire.FrameStarted, &struct{}{}); err != nil {
			t.close()
		}
		return err
	})
	if err != nil {
		return nil, operation("watch", path, err)
	}
	t.timeout = noTimeout // silence is what a watch mostly sees
	t.extendRead()
	return &Watcher{talk: t, path: path}, nil
}

// Watcher tells of changes. It is not safe for concurrent use, but for Close.
type Watcher struct {
	talk *streamOp
	path string
}

// Next waits for changes. A watch whose wire broke is over: its error is
// ErrLost, and a new one does not know what happened in between.
func (w *Watcher) Next() ([]FileEvent, error) {
	frame, err := w.talk.frames.Frame()
	switch {
	case err != nil:
		return nil, operation("watch", w.path, w.talk.errorFor(err))
	case frame.Type == wire.FrameError:
		return nil, operation("watch", w.path, w.talk.machine.errorFrame(w.talk.wire, frame))
	case frame.Type != wire.FrameEvents:
		return nil, w.talk.unexpectedFrame(frame)
	}
	var told []wire.FileEvent
	if err := w.talk.decode(frame, &told); err != nil {
		return nil, err
	}
	events, err := eventsOf(told)
	if err != nil {
		return nil, w.talk.machine.protocolError(w.talk.wire, err)
	}
	return events, nil
}

// Close ends the watch.
func (w *Watcher) Close() error {
	w.talk.close()
	return nil
}

// eventsOf believes of events what is possible.
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
