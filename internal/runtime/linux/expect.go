package linux

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// nursery holds processes that were begun for sandboxes which are about to be
// made, by the sandboxes' names.
type nursery struct {
	mu       sync.Mutex
	expected map[string]*expected
}

// expected is a process that waits for its sandbox.
type expected struct {
	user account
	log  *os.File // has no name yet
	born func() (*embryo, error)
}

// Expect begins to start the process of a new sandbox while the sandbox is still
// being prepared: it has its namespaces by the time its walls are drawn. Start
// takes it. Whoever expected it calls the result when the sandbox has started,
// or will not: a process that nobody took ends then, as it does if its maker
// ends. Nothing is lost where there can be none.
func (r *Runtime) Expect(spec *sandbox.Spec) (done func()) {
	e, err := r.expect(spec)
	if err != nil || !r.nursery.add(spec.Name, e) {
		e.end()
		return func() {}
	}
	return func() {
		if r.nursery.remove(spec.Name, e) {
			e.end()
		}
	}
}

func (r *Runtime) expect(spec *sandbox.Spec) (*expected, error) {
	user, err := userOf(spec.User)
	if err != nil {
		return nil, err
	}
	guest, err := r.shelf.program()
	if err != nil {
		return nil, err
	}
	// A log without a name leaves nothing behind if no sandbox comes.
	log, err := os.OpenFile(r.dir, unix.O_TMPFILE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	born, err := conceiveSoon(guest, user, log)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &expected{user: user, log: log, born: born}, nil
}

// end lets a process go that nobody took.
func (e *expected) end() {
	if e == nil {
		return
	}
	unborn, _ := e.born()
	_ = unborn.abort()
	_ = e.log.Close()
}

func (n *nursery) add(name string, e *expected) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.expected[name] != nil {
		return false
	}
	if n.expected == nil {
		n.expected = map[string]*expected{}
	}
	n.expected[name] = e
	return true
}

func (n *nursery) remove(name string, e *expected) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.expected[name] != e {
		return false
	}
	delete(n.expected, name)
	return true
}

func (n *nursery) take(name string) *expected {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.expected[name]
	delete(n.expected, name)
	return e
}

// takeExpected is the process that was begun for this sandbox; nil if there is
// none that will do.
func (i *Instance) takeExpected(user account) func() (*embryo, error) {
	e := i.runtime.nursery.take(i.name)
	if e == nil {
		return nil
	}
	if e.user != user || i.adoptLog(e.log) != nil {
		e.end()
		return nil
	}
	_ = e.log.Close()
	return e.born
}

// adoptLog gives a log its name.
func (i *Instance) adoptLog(log *os.File) error {
	_ = os.Remove(i.path(logFile))
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", log.Fd()), unix.AT_FDCWD, i.path(logFile), unix.AT_SYMLINK_FOLLOW)
}
