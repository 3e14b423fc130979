package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

// recheckAfter is how soon after a change in its directory the guest looks at
// its socket again. Changes in between cost nothing more, so that code which
// removes the socket in a loop keeps nobody busy but itself.
const recheckAfter = 250 * time.Millisecond

// pollAfter is how often the guest looks at its socket where it cannot be told of
// changes: the kernel counts watches by user, over all sandboxes, and somebody
// may have taken the last.
const pollAfter = time.Second

// door is the socket on which hosts knock. Its directory belongs to the
// sandbox's user: what stands there may be removed or replaced at any time.
type door struct {
	path      string
	inherited int                  // a descriptor that listens at path, for the first time; 0 if there is none
	admit     func(net.Conn) error // refuses who is no host
	serve     func(net.Conn)
}

// keepOpen listens until ctx ends, and opens the door anew whenever the socket
// in the directory is not ours any more.
func (d *door) keepOpen(ctx context.Context) error {
	changes, err := watch(filepath.Dir(d.path))
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENOSPC) {
		changes = nil
	} else if err != nil {
		return err
	}
	if changes != nil {
		defer context.AfterFunc(ctx, func() { changes.Close() })()
	}
	for {
		listener, err := d.open()
		if err == nil {
			go d.accept(listener)
			d.awaitLoss(ctx, changes)
			listener.Close()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(recheckAfter):
		}
	}
}

func (d *door) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors or memory left: others give some back
			time.Sleep(recheckAfter)
			continue
		}
		if d.admit(conn) != nil {
			conn.Close()
			continue
		}
		go d.serve(conn)
	}
}

// awaitLoss returns when path does not lead to our listener any more.
func (d *door) awaitLoss(ctx context.Context, changes *os.File) {
	ours, err := os.Lstat(d.path)
	if err != nil {
		return
	}
	for {
		if !awaitChange(ctx, changes) {
			return
		}
		now, err := os.Lstat(d.path)
		if err != nil || !os.SameFile(ours, now) || ctx.Err() != nil {
			return
		}
	}
}

// awaitChange returns a moment after something changed in the directory, or may
// have; false if there is nothing more to wait for.
func awaitChange(ctx context.Context, changes *os.File) bool {
	if changes == nil {
		select {
		case <-ctx.Done():
		case <-time.After(pollAfter):
		}
		return true
	}
	var events [4 << 10]byte
	if _, err := changes.Read(events[:]); err != nil {
		return false
	}
	select {
	case <-ctx.Done(): // who ends soon after the start is not kept waiting
	case <-time.After(recheckAfter):
	}
	return true
}

// open listens at path: on the socket that was inherited, or on a fresh one.
func (d *door) open() (net.Listener, error) {
	if d.inherited == 0 {
		return listen(d.path)
	}
	file := os.NewFile(uintptr(d.inherited), d.path)
	defer file.Close()
	d.inherited = 0
	return net.FileListener(file)
}

// listen puts a fresh socket at path, whatever is there.
func listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(path, path+"."+time.Now().Format("150405.000000000")); err != nil {
			return nil, err
		}
	}
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // it may be somebody else's by then
	return listener, nil
}

// watch tells of every change to the names in dir.
func watch(dir string) (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	const names = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR
	if _, err := unix.InotifyAddWatch(fd, dir, names); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("socket directory %q: %w", dir, err)
	}
	return os.NewFile(uintptr(fd), "inotify"), nil
}

// sameUser admits every process of the guest's own user. It is for a guest that
// has no pid namespace to itself.
func sameUser(conn net.Conn) error {
	uid, err := wire.PeerUID(conn)
	if err != nil {
		return err
	}
	if uid != os.Getuid() && uid != 0 {
		return fmt.Errorf("user %d is not the guest's", uid)
	}
	return nil
}
