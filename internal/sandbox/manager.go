package sandbox

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine"
)

// The limits of the manager's own work; Options can change the first three.
const (
	DefaultWireTimeout   = 15 * time.Second // from start until the guest answers
	DefaultSetupTimeout  = 10 * time.Minute
	DefaultPruneInterval = 5 * time.Minute

	pingTimeout    = 2 * time.Second
	cleanupTimeout = 30 * time.Second
	// touchInterval is how exact lastUsedAtMs is kept: a use is written at most
	// this often, which is far below the hot window and the prune limits.
	touchInterval = 30 * time.Second
)

// Options are what a Manager is made of.
type Options struct {
	Registry *Registry
	Leases   *filelock.Locks
	// Runtime returns the machinery of a backend, opening it on first use.
	Runtime  func(ctx context.Context, backend string) (Runtime, error)
	Backends []string     // asked by Repair even when no row names them
	Logger   *slog.Logger // nil discards

	WireTimeout   time.Duration
	SetupTimeout  time.Duration
	PruneInterval time.Duration
	Now           func() time.Time
	// Unmade is called for a creation that did not finish, before its row goes: it
	// takes away what was made for it elsewhere. nil: nothing was.
	Unmade func(ctx context.Context, row *Entry) error
	// SetupEgress opens what the set-up command of a sandbox reaches by names; nil, or a
	// nil result, is nothing.
	SetupEgress func(ctx context.Context, spec *Spec, m *machine.Machine) (SetupEgress, error)
	// TrustedRoots returns the file for Spec.TrustedRoots of a sandbox that is about to be
	// made. Nil is none.
	TrustedRoots func(spec *Spec) (path string, err error)
	// Removed is called for a sandbox that is gone, before its row goes: it removes what
	// belongs to that sandbox elsewhere. Nil does nothing.
	Removed func(name string) error
	// Watch is told of every sandbox that was started or removed, and of those that could
	// not be. Nil is nobody.
	Watch func(context.Context, *Activity)
	// Leftovers removes what killed processes left outside of the machinery. Repair
	// calls it last. May be nil.
	Leftovers func(ctx context.Context) []Removal
	// Checkpoint is called with a name before and after every step that changes
	// something outside, so that tests can stop the world exactly there.
	Checkpoint func(step string)
}

// Manager keeps at most one live sandbox per name and counts its users. It is
// safe for concurrent use, also by several processes on one state directory.
type Manager struct {
	Options
	mu    sync.Mutex
	live  map[string]*live   // by name: those that the next user joins
	wires map[*live]struct{} // all that are open, retired ones too
}

// live is a sandbox that this process has a wire to.
type live struct {
	name       string
	machine    *machine.Machine
	instance   Instance
	configHash string // "" if it was made with another backend than is asked for
	users      int
	lease      *filelock.Lock // held while users > 0
	touched    time.Time
}

// NewManager returns a manager; zero options get their defaults.
func NewManager(o Options) *Manager {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Checkpoint == nil {
		o.Checkpoint = func(string) {}
	}
	o.WireTimeout = cmp.Or(o.WireTimeout, DefaultWireTimeout)
	o.SetupTimeout = cmp.Or(o.SetupTimeout, DefaultSetupTimeout)
	o.PruneInterval = cmp.Or(o.PruneInterval, DefaultPruneInterval)
	return &Manager{Options: o, live: map[string]*live{}, wires: map[*live]struct{}{}}
}

// Handle is a sandbox in use: until it is released no process prunes or recreates
// the sandbox.
type Handle struct {
	Name    string
	Machine *machine.Machine
	Created bool     // made by this call
	Member  string   // what it was called in the pool of a PoolKeeper that it came out of by this call; "" if it did not
	Notices []string // what the user should know, such as a changed configuration
	release func()
}

// Release ends the use. The wire stays open for the next one in this process.
func (h *Handle) Release() { h.release() }

// Close drops every wire of this process. Sandboxes keep running.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.live)
	for l := range m.wires {
		m.closeMachine(l)
	}
}

// closeMachine closes a wire and releases its use lock. m.mu is held.
func (m *Manager) closeMachine(l *live) {
	_ = l.machine.Close()
	l.lease.Release()
	delete(m.wires, l)
}

// The two locks of a name: whoever changes a sandbox holds the first, whoever
// works in it shares the second. Users are never in the way of users.
func changeLock(name string) string { return "change:" + name }
func useLock(name string) string    { return "use:" + name }

// retire ends the sharing of a wire: its sandbox does not answer, or is
// gone. Those who use it keep it until they are done; one of them may just have
// waited longer for an answer than the others.
func (m *Manager) retire(l *live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retireLocked(l)
}

func (m *Manager) retireLocked(l *live) {
	if m.live[l.name] == l {
		delete(m.live, l.name)
	}
	if l.users == 0 {
		m.closeMachine(l)
	}
}

// forget retires the wire to a sandbox that is about to be removed.
func (m *Manager) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.live[name]; l != nil {
		m.retireLocked(l)
	}
}

// join adds a user to the live sandbox of name, if there is one with that hash.
func (m *Manager) join(ctx context.Context, spec *Spec) (*live, error) {
	l := m.joinable(spec)
	if l == nil || m.joinUsers(l) {
		return l, nil
	}
	// This process does not use it, so it holds no use lock yet. Another process may be
	// changing the sandbox for minutes: others of this one must not wait for it.
	held, err := m.Leases.Share(ctx, useLock(spec.Name))
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live[l.name] != l {
		held.Release()
		return nil, nil
	}
	if l.users++; l.users > 1 {
		held.Release() // another task was quicker
	} else {
		l.lease = held
	}
	return l, nil
}

func (m *Manager) joinable(spec *Spec) *live {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.live[spec.Name]; l != nil && l.configHash == spec.ConfigHash {
		return l
	}
	return nil
}

// joinUsers adds a user if this process holds the use lock already.
func (m *Manager) joinUsers(l *live) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.users == 0 || m.live[l.name] != l {
		return false
	}
	l.users++
	return true
}

func (m *Manager) leave(l *live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.lease.Release()
	l.lease = nil
	if m.live[l.name] != l {
		m.closeMachine(l)
	}
}

// handle wraps one user's share of a live sandbox.
func (m *Manager) handle(l *live) *Handle {
	return &Handle{Name: l.name, Machine: l.machine, release: sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		m.touch(ctx, l) // a use lasts until now, and while it lasts nobody prunes
		m.leave(l)
	})}
}

// touch writes the time of use unless it was written a moment ago. A time that
// lies ahead was written before the clock was set back, and is corrected.
func (m *Manager) touch(ctx context.Context, l *live) {
	now := m.Now()
	m.mu.Lock()
	age := now.Sub(l.touched)
	due := age >= touchInterval || age < 0
	if due {
		l.touched = now
	}
	m.mu.Unlock()
	if !due {
		return
	}
	if err := m.Registry.Touch(ctx, l.name, now); err != nil {
		m.Logger.WarnContext(ctx, "time of use not recorded", "sandbox", l.name, "error", err)
	}
}
