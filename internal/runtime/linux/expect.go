package linux

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/runtime/cgroups"
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
	id     string // of the sandbox to be, which names its control group
	user   account
	limits cgroups.Limits
	group  *cgroups.Group
	log    *os.File // has no name yet
	born   func() (*embryo, error)
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
	e := &expected{id: newID(), user: user, log: log, group: &cgroups.Group{}}
	if err := e.begin(r, spec, guest); err != nil {
		e.end()
		return nil, err
	}
	return e, nil
}

func (e *expected) begin(r *Runtime, spec *sandbox.Spec, guest string) (err error) {
	if e.limits, err = r.groupLimits(spec); err != nil {
		return err
	}
	group, err := r.makeGroup(context.Background(), e.id, e.limits)
	if err != nil {
		return err
	}
	e.group = group
	e.born, err = conceiveSoon(guest, e.user, e.log, group)
	return err
}

// newID is the id of a sandbox that has none yet.
func newID() string { return strings.ToLower(rand.Text()) }

// id is the id of a new sandbox: that of the process that was begun for it, if
// there is one.
func (n *nursery) id(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.expected[name]; e != nil {
		return e.id
	}
	return newID()
}

// endTimeout bounds the wait for the kernel to see a process off.
const endTimeout = 10 * time.Second

// end lets a process go that nobody took.
func (e *expected) end() {
	if e == nil {
		return
	}
	if e.born != nil {
		unborn, _ := e.born()
		_ = unborn.abort()
	}
	_ = e.log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = e.group.Remove(ctx)
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
func (i *Instance) takeExpected(limits cgroups.Limits) *expected {
	e := i.runtime.nursery.take(i.name)
	if e == nil {
		return nil
	}
	user, err := userOf(i.record.Spec.User)
	if err != nil || e.user != user || e.id != i.record.Summary.ID || !reflect.DeepEqual(e.limits, limits) || i.adoptLog(e.log) != nil {
		e.end()
		return nil
	}
	_ = e.log.Close()
	return e
}

// adoptLog gives a log its name.
func (i *Instance) adoptLog(log *os.File) error {
	_ = os.Remove(i.path(logFile))
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", log.Fd()), unix.AT_FDCWD, i.path(logFile), unix.AT_SYMLINK_FOLLOW)
}
