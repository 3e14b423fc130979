package tool

import (
	"context"
	"sync"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// MaxSeen bounds the files that a session's memory holds. The one that was not
// used for longest goes first.
const MaxSeen = 2000

// Memory remembers which version of each file a session has seen, so that it
// does not overwrite what it does not know. The zero version means unknown, and
// remembering it forgets. Keys are file names that the Set makes.
type Memory interface {
	Recall(ctx context.Context, key string) (guestfs.Version, error)
	Remember(ctx context.Context, key string, version guestfs.Version) error
}

// NewMemory returns a memory that lasts as long as the process.
func NewMemory() Memory { return &memory{files: map[string]seen{}} }

type memory struct {
	mu    sync.Mutex
	files map[string]seen
	count uint64
}

type seen struct {
	version guestfs.Version
	at      uint64
}

func (m *memory) Recall(_ context.Context, key string) (guestfs.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[key].version, nil
}

func (m *memory) Remember(_ context.Context, key string, version guestfs.Version) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if version == "" {
		delete(m.files, key)
		return nil
	}
	m.count++
	m.files[key] = seen{version, m.count}
	if len(m.files) > MaxSeen {
		m.dropOldest()
	}
	return nil
}

func (m *memory) dropOldest() {
	oldest, at := "", m.count
	for key, s := range m.files {
		if s.at <= at {
			oldest, at = key, s.at
		}
	}
	delete(m.files, oldest)
}

// seenKey tells files of different machines apart: a version means something
// only on the machine that gave it.
func (c *call) seenKey(path string) string { return c.at.Name + ":" + path }

// recall returns the version that this session knows, or "".
func (c *call) recall(ctx context.Context, path string) (guestfs.Version, error) {
	return c.set.Memory.Recall(ctx, c.seenKey(path))
}

// remember notes a version that this session now knows, or with "" that it
// knows none.
func (c *call) remember(ctx context.Context, path string, version guestfs.Version) error {
	return c.set.Memory.Remember(ctx, c.seenKey(path), version)
}

// expected is the version that a file must be in to be changed: the one that
// this session knows, else the one that was just read. What it never read it may
// change: an edit proves by itself what it knows. A file that is certainly in
// another version than the session knows is refused here; the guest looks again
// when it writes.
func (c *call) expected(ctx context.Context, path string, now guestfs.Version) (guestfs.Version, error) {
	known, err := c.recall(ctx, path)
	switch {
	case err != nil:
		return "", err
	case known == "":
		return now, nil
	case known.Contradicts(now):
		return "", machine.ErrChanged
	}
	return known, nil
}
