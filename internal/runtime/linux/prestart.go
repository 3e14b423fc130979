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

// prestartedInits holds the init processes that were started for sandboxes which
// are about to be made, by the sandboxes' names.
type prestartedInits struct {
	mu     sync.Mutex
	byName map[string]*prestartedInit
}

// prestartedInit is an init process that waits for its sandbox to be made.
type prestartedInit struct {
	id     string // of the sandbox to be, which names its control group
	user   account
	limits cgroups.Limits
	group  *cgroups.Group
	log    *os.File // has no name yet
	result func() (*initProcess, error)
}

// Prestart starts the init process of a new sandbox while the sandbox is still
// being prepared: its namespaces exist by the time its blueprint is made. Start
// uses it. The caller calls done when the sandbox has started, or will not: a
// process that was not used ends then, as it does if the caller ends. If it cannot
// be started early, Start starts one.
func (r *Runtime) Prestart(spec *sandbox.Spec) (done func()) {
	e, err := r.prestart(spec)
	if err != nil || !r.prestarted.add(spec.Name, e) {
		e.end()
		return func() {}
	}
	return func() {
		if r.prestarted.remove(spec.Name, e) {
			e.end()
		}
	}
}

func (r *Runtime) prestart(spec *sandbox.Spec) (*prestartedInit, error) {
	user, err := userOf(spec.User)
	if err != nil {
		return nil, err
	}
	guest, err := r.guests.program()
	if err != nil {
		return nil, err
	}
	// A log without a name leaves nothing behind if no sandbox comes.
	log, err := os.OpenFile(r.dir, unix.O_TMPFILE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	e := &prestartedInit{id: newID(), user: user, log: log, group: &cgroups.Group{}}
	if err := e.begin(r, spec, guest); err != nil {
		e.end()
		return nil, err
	}
	return e, nil
}

func (e *prestartedInit) begin(r *Runtime, spec *sandbox.Spec, guest string) (err error) {
	if e.limits, err = r.groupLimits(spec); err != nil {
		return err
	}
	group, err := r.makeGroup(context.Background(), e.id, e.limits)
	if err != nil {
		return err
	}
	e.group = group
	e.result, err = startInitAsync(guest, e.user, e.log, group)
	return err
}

// newID returns the id of a new sandbox.
func newID() string { return strings.ToLower(rand.Text()) }

// id returns the id of a new sandbox: that of the process that was started for it,
// if there is one, whose control group has that name.
func (n *prestartedInits) id(name string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e := n.byName[name]; e != nil {
		return e.id
	}
	return newID()
}

// endTimeout bounds the wait until the control group of an ended process is empty.
const endTimeout = 10 * time.Second

// end ends a process that was not used, and removes its control group.
func (e *prestartedInit) end() {
	if e == nil {
		return
	}
	if e.result != nil {
		init, _ := e.result()
		_ = init.abort()
	}
	_ = e.log.Close()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = e.group.Remove(ctx)
}

func (n *prestartedInits) add(name string, e *prestartedInit) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName[name] != nil {
		return false
	}
	if n.byName == nil {
		n.byName = map[string]*prestartedInit{}
	}
	n.byName[name] = e
	return true
}

func (n *prestartedInits) remove(name string, e *prestartedInit) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName[name] != e {
		return false
	}
	delete(n.byName, name)
	return true
}

func (n *prestartedInits) take(name string) *prestartedInit {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.byName[name]
	delete(n.byName, name)
	return e
}

// takePrestarted returns the process that was started for this sandbox; nil if
// there is none with the same user and limits.
func (i *Instance) takePrestarted(limits cgroups.Limits) *prestartedInit {
	e := i.runtime.prestarted.take(i.name)
	if e == nil {
		return nil
	}
	user, err := userOf(i.record.Spec.User)
	if err != nil || e.user != user || e.id != i.record.Summary.ID || !reflect.DeepEqual(e.limits, limits) || i.linkLog(e.log) != nil {
		e.end()
		return nil
	}
	_ = e.log.Close()
	return e
}

// linkLog gives the log of a prestarted process its name.
func (i *Instance) linkLog(log *os.File) error {
	_ = os.Remove(i.path(logFile))
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", log.Fd()), unix.AT_FDCWD, i.path(logFile), unix.AT_SYMLINK_FOLLOW)
}
