package sandbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/lease"
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
	Leases   *lease.Book
	// Runtime returns the machinery of a backend, opening it on first use.
	Runtime  func(ctx context.Context, backend string) (Runtime, error)
	Backends []string     // asked by Repair even when no row names them
	Logger   *slog.Logger // nil discards

	WireTimeout   time.Duration
	SetupTimeout  time.Duration
	PruneInterval time.Duration
	Now           func() time.Time
	// Checkpoint is called with a name before and after every step that changes
	// something outside, so that tests can stop the world exactly there.
	Checkpoint func(step string)
}

// Manager keeps at most one live sandbox per name and knows who uses it. It is
// safe for concurrent use, also by several processes on one state directory.
type Manager struct {
	Options
	mu   sync.Mutex
	live map[string]*live
}

// live is a sandbox that this process has a wire to.
type live struct {
	machine    *machine.Machine
	instance   Instance
	configHash string
	users      int
	lease      *lease.Lease // held while users > 0
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
	o.WireTimeout = orDefault(o.WireTimeout, DefaultWireTimeout)
	o.SetupTimeout = orDefault(o.SetupTimeout, DefaultSetupTimeout)
	o.PruneInterval = orDefault(o.PruneInterval, DefaultPruneInterval)
	return &Manager{Options: o, live: map[string]*live{}}
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d == 0 {
		return fallback
	}
	return d
}

// Handle is a sandbox in use: until it is released nobody prunes or recreates
// the sandbox.
type Handle struct {
	Name    string
	Machine *machine.Machine
	Created bool     // made by this call
	Notices []string // what the user should know, such as a changed configuration
	release func()
}

// Release ends the use. The wire stays open for the next one in this process.
func (h *Handle) Release() { h.release() }

// Close drops every wire of this process. Sandboxes live on.
func (m *Manager) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, l := range m.live {
		_ = l.machine.Close()
		l.lease.Release()
		delete(m.live, name)
	}
}

// The two locks of a name: whoever changes a sandbox holds the first, whoever
// works in it shares the second. Users are never in the way of users.
func changeLock(name string) string { return "change:" + name }
func useLock(name string) string    { return "use:" + name }

// forget drops the wire to a sandbox that does not answer or is gone.
func (m *Manager) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.live[name]; l != nil {
		_ = l.machine.Close()
		l.lease.Release()
		delete(m.live, name)
	}
}

// join adds a user to the live sandbox of name, if there is one with that hash.
func (m *Manager) join(ctx context.Context, spec *Spec) (*live, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.live[spec.Name]
	if l == nil || l.configHash != spec.ConfigHash {
		return nil, nil
	}
	return l, m.addUser(ctx, l, spec.Name)
}

// addUser counts a user and makes sure that the lease is held. m.mu is held.
func (m *Manager) addUser(ctx context.Context, l *live, name string) error {
	if l.users == 0 {
		held, err := m.Leases.Share(ctx, useLock(name))
		if err != nil {
			return err
		}
		l.lease = held
	}
	l.users++
	return nil
}

func (m *Manager) leave(l *live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.users--; l.users == 0 {
		l.lease.Release()
		l.lease = nil
	}
}

// handle wraps one user's share of a live sandbox.
func (m *Manager) handle(name string, l *live) *Handle {
	return &Handle{Name: name, Machine: l.machine, release: sync.OnceFunc(func() { m.leave(l) })}
}

// touch writes the time of use unless it was written a moment ago.
func (m *Manager) touch(ctx context.Context, name string, l *live) {
	now := m.Now()
	m.mu.Lock()
	due := now.Sub(l.touched) >= touchInterval
	if due {
		l.touched = now
	}
	m.mu.Unlock()
	if !due {
		return
	}
	if err := m.Registry.Touch(ctx, name, now); err != nil {
		m.Logger.WarnContext(ctx, "time of use not recorded", "sandbox", name, "error", err)
	}
}
