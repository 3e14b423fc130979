package attach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// ErrFull means that the spool has reached its size.
var ErrFull = errors.New("too many attachments are waiting")

// Spool is a directory with the files of tasks that are not over. It is safe for
// concurrent use.
type Spool struct {
	dir              string
	most, perAccount int64

	mu   sync.Mutex
	all  int64
	by   map[string]int64 // accounts
	held map[string]spooled
}

type spooled struct {
	account string
	size    int64
}

// Default sizes of the spool.
const (
	DefaultSpool           = 1 << 30
	DefaultSpoolPerAccount = 256 << 20
)

// NewSpool returns a spool in a directory, which is created when it is needed; 0 is
// the default size.
func NewSpool(dir string, most, perAccount int64) *Spool {
	if most == 0 {
		most = DefaultSpool
	}
	if perAccount == 0 {
		perAccount = DefaultSpoolPerAccount
	}
	return &Spool{dir: dir, most: most, perAccount: perAccount, by: map[string]int64{}, held: map[string]spooled{}}
}

// Path is the directory of a task's files.
func (s *Spool) Path(id string) string { return filepath.Join(s.dir, id) }

// Source is the path of one file.
func (s *Spool) Source(id string, index int) string {
	return filepath.Join(s.dir, id, strconv.Itoa(index))
}

// Keep writes files. Files that are there already are the same.
func (s *Spool) Keep(account, id string, uploads []Upload) (err error) {
	var size int64
	for _, u := range uploads {
		size += int64(len(u.Content))
	}
	if fresh, err := s.reserve(account, id, size); !fresh || err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.Drop(id)
		}
	}()
	if err := os.MkdirAll(s.Path(id), 0o700); err != nil {
		return err
	}
	for i, u := range uploads {
		if err := os.WriteFile(s.Source(id, i), u.Content, 0o600); err != nil {
			return fmt.Errorf("keep an attachment: %w", err)
		}
	}
	return nil
}

// reserve counts files before they are written; fresh is false if they are there
// already.
func (s *Spool) reserve(account, id string, size int64) (fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.held[id]; is {
		return false, nil
	}
	if s.all+size > s.most || s.by[account]+size > s.perAccount {
		return false, ErrFull
	}
	s.held[id] = spooled{account, size}
	s.all += size
	s.by[account] += size
	return true, nil
}

// Drop removes the files of a task that is over.
func (s *Spool) Drop(id string) {
	_ = os.RemoveAll(s.Path(id)) // leftovers are removed at the next start
	s.mu.Lock()
	defer s.mu.Unlock()
	h, is := s.held[id]
	if !is {
		return
	}
	delete(s.held, id)
	s.all -= h.size
	if s.by[h.account] -= h.size; s.by[h.account] <= 0 {
		delete(s.by, h.account)
	}
}

// Adopt counts files that an earlier process stored.
func (s *Spool) Adopt(account, id string, files []File) {
	var size int64
	for _, f := range files {
		size += f.Size
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[id] = spooled{account, size}
	s.all += size
	s.by[account] += size
}

// Clean removes directories that belong to no task.
func (s *Spool) Clean() error {
	all, err := os.ReadDir(s.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		s.mu.Lock()
		_, is := s.held[e.Name()]
		s.mu.Unlock()
		if !is {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.dir, e.Name())))
		}
	}
	return err
}
