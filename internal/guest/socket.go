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

// recheckAfter is how soon the guest opens its socket again after it was lost, or
// accepts again after that failed.
const recheckAfter = 250 * time.Millisecond

// socketListener is the socket on which hosts knock. Its directory belongs to the
// sandbox's user: what stands there may be removed or replaced at any time.
type socketListener struct {
	path      string
	inherited int                  // a descriptor that listens at path, for the first time; 0 if there is none
	admit     func(net.Conn) error // refuses who is no host
	serve     func(net.Conn)
	checks    *socketCheck
}

// serveUntil listens until ctx ends, and opens the door anew whenever the socket
// in the directory is not ours any more.
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

// waitForLoss returns when path does not lead to our listener any more.
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

// open listens at path: on the socket that was inherited, or on a fresh one.
func (d *socketListener) open() (net.Listener, error) {
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
