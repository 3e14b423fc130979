package guest

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lookout tells of changes to the names in a directory. It looks by itself in
// the first moment, and asks the kernel to be told only then: the kernel takes
// milliseconds to end a watch, for which whoever removes a sandbox that lived for
// one command would wait.
type lookout struct {
	dir    string
	asked  bool
	events *os.File // of inotify; nil if there are none
}

// awaitChange returns a moment after something changed, or may have, or ctx
// ended.
func (l *lookout) awaitChange(ctx context.Context) {
	if l.events == nil {
		pause(ctx, pollAfter)
		l.ask(ctx)
		return
	}
	var events [4 << 10]byte
	if _, err := l.events.Read(events[:]); err != nil {
		l.close() // and look by ourselves
	}
	pause(ctx, recheckAfter)
}

// ask has the kernel tell of changes until ctx ends, if it can: it counts
// watches by user, over all sandboxes, and somebody may have taken the last.
func (l *lookout) ask(ctx context.Context) {
	if l.asked {
		return
	}
	l.asked = true
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return
	}
	const names = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, l.dir, names); err != nil {
		unix.Close(fd)
		return
	}
	events := os.NewFile(uintptr(fd), "inotify")
	context.AfterFunc(ctx, func() { _ = events.Close() })
	l.events = events
}

func (l *lookout) close() {
	if l.events != nil {
		_ = l.events.Close()
		l.events = nil
	}
}

// pause waits for d, or for ctx.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
