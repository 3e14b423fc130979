package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/atoll-run/atoll/internal/runtime/guestbin"
	"golang.org/x/sys/unix"
)

// There are two copies of the guest. The one that sets up the sandbox is readable
// for its owner, the user that starts it: otherwise the kernel would not let that
// user write the process's id maps. The one that is shown inside is executable for
// all and readable for none: a program that its user cannot read is not dumpable
// from its first instruction on, so that no process in the sandbox, which may have
// the owner's uid, can trace it or open its memory and descriptors.
const (
	guestMode  = 0o711
	insideMode = 0o111
)

// insideOf returns the path of the copy that is shown inside.
func insideOf(program string) string { return filepath.Join(filepath.Dir(program), "inside") }

// guestStore keeps the guest program below the state directory, under a name made of
// its content: an upgrade never changes the program of a running sandbox. No
// sandbox sees that directory; inside, the guest is a read-only mount.
type guestStore struct {
	dir  string
	find func(arch string) (*guestbin.Guest, error)

	mu   sync.Mutex
	path string
}

// open opens the guest, for a process to be started from it: from the store, or
// from memory if nothing may be written. The second result names its content.
func (s *guestStore) open() (*os.File, string, error) {
	guest, err := s.find(runtime.GOARCH)
	if err != nil {
		return nil, "", err
	}
	if f, err := os.Open(s.dirFor(guest)); err == nil {
		return f, guest.Hash, nil
	}
	f, err := inMemory(guest)
	if err != nil {
		return nil, "", fmt.Errorf("guest: %w", err)
	}
	return f, guest.Hash, nil
}

// inMemory returns a sealed memfd with the guest.
func inMemory(guest *guestbin.Guest) (*os.File, error) {
	body, err := guest.Read()
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("atoll-guest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "atoll-guest")
	_, err = f.Write(body)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (s *guestStore) dirFor(guest *guestbin.Guest) string {
	return filepath.Join(s.dir, "linux-"+guest.Hash, "atoll-guest")
}

// program writes the guest unless it is stored, and returns its path.
func (s *guestStore) program() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" && unix.Access(s.path, unix.X_OK) == nil && unix.Access(insideOf(s.path), unix.X_OK) == nil {
		return s.path, nil
	}
	guest, err := s.find(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	path := s.dirFor(guest)
	if err := errors.Join(writeGuest(path, guestMode, guest), writeGuest(insideOf(path), insideMode, guest)); err != nil {
		return "", fmt.Errorf("guest: %w", err)
	}
	s.path = path
	return path, nil
}

// isStored reports whether path is a copy of the guest.
func isStored(path string, mode os.FileMode, guest *guestbin.Guest) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm() == mode && info.Size() == guest.Size
}

// writeGuest makes a copy appear whole or not at all, unless it is there.
func writeGuest(path string, mode os.FileMode, guest *guestbin.Guest) error {
	if isStored(path, mode, guest) {
		return nil
	}
	body, err := guest.Read()
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(body)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = publish(f.Name(), path, func() bool { return isStored(path, mode, guest) })
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// publish renames a file. If another process was first, its file stays:
// sandboxes that are being made have it open, and a file that was replaced can be
// mounted no more.
func publish(from, to string, stands func() bool) error {
	if os.Link(from, to) == nil || stands() {
		return os.Remove(from)
	}
	return os.Rename(from, to)
}
