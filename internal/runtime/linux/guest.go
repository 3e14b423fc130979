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
	read func(arch string) ([]byte, error)

	mu   sync.Mutex
	path string
}

// program returns the path of the guest.
func (s *shelf) program() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" && unix.Access(s.path, unix.X_OK) == nil {
		return s.path, nil
	}
	body, err := s.read(runtime.GOARCH)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, "linux-"+guestbin.Hash(body), "atoll-guest")
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != guestMode || info.Size() != int64(len(body)) {
		if err := shelve(path, body); err != nil {
			return "", fmt.Errorf("guest: %w", err)
		}
	}
	s.path = path
	return path, nil
}

// shelve makes the file appear whole or not at all.
func shelve(path string, body []byte) error {
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
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
