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

// recheckAfter is the pause before the socket is opened again after it was lost, or
// accept is called again after it failed.
const recheckAfter = 250 * time.Millisecond

// socketListener listens on the socket for hosts. Its directory belongs to the sandbox's
// user, so the socket may be removed or replaced at any time.
type socketListener struct {
	path      string
	inherited int                  // a descriptor that listens on path already; 0: none
	admit     func(net.Conn) error // refuses a peer that is not a host
	serve     func(net.Conn)
	checks    *socketCheck
}

// serveUntil listens until ctx ends, and opens the socket again whenever it was removed
// or replaced.
func (d *socketListener) serveUntil(ctx context.Context) error {
	if _, err := os.Stat(filepath.Dir(d.path)); err != nil {
		return fmt.Errorf("socket directory: %w", err)
	}
	for {
		listener, err := d.open()
		if err == nil {
			go d.accept(listener)
			d.waitForLoss(ctx)
			listener.Close()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(recheckAfter):
		}
	}
}

func (d *socketListener) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors or memory are left: try again
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

// waitForLoss returns when path is not the socket that we listen on.
func (d *socketListener) waitForLoss(ctx context.Context) {
	ours, err := os.Lstat(d.path)
	if err != nil {
		return
	}
	for ctx.Err() == nil {
		d.checks.wait(ctx)
		now, err := os.Lstat(d.path)
		if err != nil || !os.SameFile(ours, now) {
			return
		}
	}
}

// open returns the inherited listener, once, or a new one.
func (d *socketListener) open() (net.Listener, error) {
	if d.inherited == 0 {
		return listen(d.path)
	}
	file := os.NewFile(uintptr(d.inherited), d.path)
	defer file.Close()
	d.inherited = 0
	return net.FileListener(file)
}

// listen listens on a new socket at path, and removes or renames what has that name.
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
	listener.SetUnlinkOnClose(false) // the path may be another socket by then
	return listener, nil
}

// sameUser admits every process of the guest's own user. It is for a guest without a
// pid namespace of its own.
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
