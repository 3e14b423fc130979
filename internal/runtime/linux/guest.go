package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/atoll-run/atoll/internal/guestbin"
	"golang.org/x/sys/unix"
)

// guestMode lets everyone run the guest and only its owner read it.
const guestMode = 0o711

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
	if s.path != "" && unix.Access(s.path, unix.X_OK) == nil {
		return s.path, nil
	}
	guest, err := s.find(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	path := s.place(guest)
	if !stands(path, guest) {
		if err := shelve(path, guest); err != nil {
			return "", fmt.Errorf("guest: %w", err)
		}
	}
	s.path = path
	return path, nil
}

// stands reports whether the guest is in its place.
func stands(path string, guest *guestbin.Guest) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm() == guestMode && info.Size() == guest.Size
}

// shelve makes the file appear whole or not at all.
func shelve(path string, guest *guestbin.Guest) error {
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
	if err = errors.Join(err, f.Chmod(guestMode), f.Close()); err == nil {
		err = publish(f.Name(), path, guest)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// publish puts a file in its place. If another process was first, its file stays:
// sandboxes that are being made have it open, and a file that was replaced can be
// mounted no more.
func publish(from, to string, guest *guestbin.Guest) error {
	if os.Link(from, to) == nil || stands(to, guest) {
		return os.Remove(from)
	}
	return os.Rename(from, to)
}
