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

// There are two copies of the guest. The one that builds the walls is readable
// for its owner, who is the user that starts it: otherwise the kernel would not
// let him say who that process is. The one that is shown inside can be run by
// everyone and read by nobody: a program that its user cannot read is not
// dumpable from its first instruction on, so that nothing in the sandbox, which
// may have the owner's number, can trace it or open its memory and descriptors.
const (
	guestMode  = 0o711
	insideMode = 0o111
)

// insideOf is the copy that is shown inside, beside the one that starts it.
func insideOf(program string) string { return filepath.Join(filepath.Dir(program), "inside") }

// shelf keeps the guest program below the state directory, under a name made of
// its content: an upgrade never changes the program of a running sandbox. No
// sandbox sees that directory; inside, the guest is a read-only mount.
type shelf struct {
	dir  string
	find func(arch string) (*guestbin.Guest, error)

	mu   sync.Mutex
	path string
}

// open opens the guest, for a process to be started from it: from the shelf, or
// from memory if nothing may be written. The second result names its content.
func (s *shelf) open() (*os.File, string, error) {
	guest, err := s.find(runtime.GOARCH)
	if err != nil {
		return nil, "", err
	}
	if f, err := os.Open(s.place(guest)); err == nil {
		return f, guest.Hash, nil
	}
	f, err := inMemory(guest)
	if err != nil {
		return nil, "", fmt.Errorf("guest: %w", err)
	}
	return f, guest.Hash, nil
}

// inMemory is a copy of the guest that nothing can change.
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

func (s *shelf) place(guest *guestbin.Guest) string {
	return filepath.Join(s.dir, "linux-"+guest.Hash, "atoll-guest")
}

// program returns the path of the guest, which is there then.
func (s *shelf) program() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" && unix.Access(s.path, unix.X_OK) == nil && unix.Access(insideOf(s.path), unix.X_OK) == nil {
		return s.path, nil
	}
	guest, err := s.find(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	path := s.place(guest)
	if err := errors.Join(shelve(path, guestMode, guest), shelve(insideOf(path), insideMode, guest)); err != nil {
		return "", fmt.Errorf("guest: %w", err)
	}
	s.path = path
	return path, nil
}

// stands reports whether a copy of the guest is in its place.
func stands(path string, mode os.FileMode, guest *guestbin.Guest) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm() == mode && info.Size() == guest.Size
}

// shelve makes a copy appear whole or not at all, unless it is there.
func shelve(path string, mode os.FileMode, guest *guestbin.Guest) error {
	if stands(path, mode, guest) {
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
		err = publish(f.Name(), path, func() bool { return stands(path, mode, guest) })
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// publish puts a file in its place. If another process was first, its file stays:
// sandboxes that are being made have it open, and a file that was replaced can be
// mounted no more.
func publish(from, to string, stands func() bool) error {
	if os.Link(from, to) == nil || stands() {
		return os.Remove(from)
	}
	return os.Rename(from, to)
}
