package files

import (
	"encoding/binary"
	"errors"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

const watchMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE |
	unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// watch sends changes in a directory until the host leaves.
func (c *Call) watch(f *wire.File) error {
	return wire.WithPart(f.Scan, func(scan *wire.FileScan) error {
		files := c.files
		select {
		case files.watches <- struct{}{}:
			defer func() { <-files.watches }()
		default:
			return wire.Fail(wire.CodeTooMany, "too many watches in this sandbox")
		}
		w, err := newWatcher(c, f, scan)
		if err != nil {
			return err
		}
		defer w.close()
		if err := wire.WriteJSON(c.Stream, wire.FrameStarted, struct{}{}); err != nil {
			return err
		}
		gone := c.stopWhenHostLeaves()
		go func() { <-gone; _ = w.events.Close() }()
		return w.run()
	})
}

// watcher is one watch: a directory, perhaps with those below it.
type watcher struct {
	files  *Server
	root   *dir
	events *os.File // of inotify
	fd     int      // the same
	dirs   map[int32]string
	budget *budget
	deep   bool
	out    *batch[wire.FileEvent]
	last   wire.FileEvent // sent last
}

func newWatcher(c *Call, f *wire.File, scan *wire.FileScan) (*watcher, error) {
	d, err := c.openDir(&f.RootedPath)
	if err != nil {
		return nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		d.release()
		return nil, fileError(err)
	}
	w := &watcher{
		files: c.files, root: d, fd: fd, events: os.NewFile(uintptr(fd), "inotify"), dirs: map[int32]string{},
		budget: newBudget(scan), deep: scan.Recursive,
		out: &batch[wire.FileEvent]{w: c.Stream, kind: wire.FrameEvents},
	}
	w.budget.entries = min(w.budget.entries, wire.MaxWatched)
	if err := w.files.do(func() error { return w.add(d, ".") }); err != nil {
		w.close()
		return nil, err
	}
	if w.deep {
		err = w.addBelow(d, ".", nil)
	}
	if _, cut := limitHit(err); err != nil && !cut {
		w.close()
		return nil, err
	} else if cut { // not everything is watched
		err = w.emit(".", "lost", true)
	}
	return w, err
}

func (w *watcher) close() {
	w.root.release()
	_ = w.events.Close()
}

// add watches one directory by its descriptor, as its name may have been reused.
func (w *watcher) add(d *dir, name string) error {
	if len(w.dirs) >= w.budget.entries {
		return refuse(wire.CodeTooLarge)
	}
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(d.fd), watchMask)
	if errors.Is(err, unix.ENOSPC) {
		return wire.Fail(wire.CodeExhausted, "the sandbox's user has no watches left")
	}
	if err != nil {
		return fileError(err)
	}
	w.dirs[int32(wd)] = name
	return nil
}

// addBelow watches the directories beneath one that is watched. It calls found, if not
// nil, for each name: files in a new directory may be older than its watch.
func (w *watcher) addBelow(d *dir, prefix string, found func(name string, dir bool) error) error {
	walk := &walker{files: w.files, budget: &budget{entries: wire.MaxScanned, depth: w.budget.depth}, refused: func(string, error) {}}
	walk.visit = func(n *walkEntry) error {
		name := path.Join(prefix, n.path)
		isDir := n.info.kind() == wire.KindDir
		if found != nil {
			if err := found(name, isDir); err != nil {
				return err
			}
		}
		if !isDir || n.info.mount {
			return nil
		}
		return w.files.do(func() error {
			below, err := n.openDir()
			if err != nil {
				return errSkip // removed, or not readable
			}
			defer below.close()
			return w.add(below, name)
		})
	}
	var second *dir
	err := w.files.do(func() (err error) { second, err = (&location{dir: d, name: "."}).openDir(); return err })
	if err != nil {
		return err
	}
	defer second.release()
	return walk.walk(second, "", 1)
}

// run sends events until the host leaves.
func (w *watcher) run() error {
	buf := make([]byte, 16<<10)
	for {
		if err := w.out.flush(); err != nil {
			return err
		}
		n, err := w.events.Read(buf)
		if err != nil {
			return nil // closed, because the host left
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			length := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:length]), "\x00")
			if err := w.event(int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), name); err != nil {
				return err
			}
			b = b[length:]
		}
	}
}

// event translates one inotify event.
func (w *watcher) event(wd int32, mask uint32, name string) error {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		return w.emit(".", "lost", true)
	}
	in, known := w.dirs[wd]
	if mask&unix.IN_IGNORED != 0 {
		delete(w.dirs, wd)
		return nil
	}
	if !known {
		return nil
	}
	full, isDir := path.Join(in, name), mask&unix.IN_ISDIR != 0
	if len(full) > maxReportedPath {
		return w.emit(".", "lost", true)
	}
	switch {
	case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0:
		if in != "." {
			return nil // reported by the watch of its parent
		}
		return w.emit(".", "removed", true)
	case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
		return w.created(full, isDir)
	case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
		w.forget(full, mask&unix.IN_MOVED_FROM != 0 && isDir)
		return w.emit(full, "removed", isDir)
	case mask&(unix.IN_MODIFY|unix.IN_CLOSE_WRITE) != 0:
		return w.emit(full, "written", isDir)
	case mask&unix.IN_ATTRIB != 0:
		return w.emit(full, "attributes", isDir)
	}
	return nil
}

// created reports a new name, and watches it if it is a directory.
func (w *watcher) created(name string, isDir bool) error {
	if err := w.emit(name, "created", isDir); err != nil || !isDir || !w.deep {
		return err
	}
	var d *dir
	err := w.files.do(func() (err error) {
		if d, err = w.root.descend(name); err == nil {
			err = w.add(d, name)
		}
		return err
	})
	if d != nil {
		defer d.release()
	}
	if err == nil {
		err = w.addBelow(d, name, func(name string, isDir bool) error { return w.emit(name, "created", isDir) })
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		if e.Code == wire.CodeTooLarge || e.Code == wire.CodeExhausted {
			return w.emit(".", "lost", true)
		}
		return nil // removed, or not readable
	}
	return err
}

// forget stops watching a directory that was moved away, with all below it.
func (w *watcher) forget(name string, moved bool) {
	if !moved {
		return
	}
	for wd, dir := range w.dirs {
		if dir == name || strings.HasPrefix(dir, name+"/") {
			_, _ = unix.InotifyRmWatch(w.fd, uint32(wd))
			delete(w.dirs, wd)
		}
	}
}

// emit sends an event, unless it repeats the one before in the same frame.
func (w *watcher) emit(name, what string, isDir bool) error {
	event := wire.FileEvent{Path: wire.Text(name), What: what, Dir: isDir}
	if event == w.last && len(w.out.buf) > 0 {
		return nil
	}
	w.last = event
	return w.out.add(&event)
}
