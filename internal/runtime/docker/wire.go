package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The wire is a unix socket in a directory of the host that is mounted into the
// sandbox. The sandbox may put there what it likes, so nothing in it is trusted:
// no link is followed, and the kernel is asked who the peer of a connection is.

// How long to wait between two attempts while a guest starts.
const (
	firstRetry = 500 * time.Microsecond
	lastRetry  = 5 * time.Millisecond
)

// The modes of the directory of the guest's socket: it belongs to the sandbox's user
// where we can give it to that user. Where we cannot, every user inside may add to it
// and remove what is its own; on the host its parent keeps other users out.
const (
	wireParentMode = 0o700
	wireOwnedMode  = 0o700
	wireSharedMode = 0o777 | fs.ModeSticky
)

// wireDir is named by a hash: a sandbox's name can be longer than is good for
// paths.
func wireDir(stateDir, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(stateDir, "wire", hex.EncodeToString(sum[:8]))
}

// makeWire makes the directory, closed to the sandbox's user, or finds the one
// of an earlier sandbox of that name, and leaves it as it is. made tells which.
func makeWire(dir string) (made bool, err error) {
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, wireParentMode); err != nil {
		return false, err
	}
	if err := os.Chmod(parent, wireParentMode); err != nil {
		return false, err
	}
	err = os.Mkdir(dir, wireOwnedMode)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// openWire lets the user of a sandbox that was never started in, and removes
// what is there. A nil owner means everyone inside.
func openWire(dir string, owner *account) error {
	if err := emptyWire(dir); err != nil {
		return err
	}
	if owner == nil {
		return os.Chmod(dir, wireSharedMode)
	}
	return errors.Join(os.Lchown(dir, owner.uid, owner.gid), os.Chmod(dir, wireOwnedMode))
}

// emptyWire removes what an earlier run of the sandbox left: a stale socket, or
// another file of its name. Nothing may be running in the sandbox.
func emptyWire(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	opened, err := root.Open(".")
	if err != nil {
		return err
	}
	defer opened.Close()
	names, err := opened.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, root.RemoveAll(name))
	}
	return err
}

// Sweep removes the wire's directory of a sandbox that is gone: a crash can end
// us between the two.
func (r *Runtime) Sweep(_ context.Context, name string) error {
	if err := os.RemoveAll(wireDir(r.options.StateDir, name)); err != nil {
		return fmt.Errorf("container %q: wire directory: %w", name, err)
	}
	return nil
}

// isStarting reports whether an attempt failed as attempts do before the guest
// listens.
func isStarting(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}
