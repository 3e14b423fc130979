package machine

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// Dialer opens a fresh connection to the guest. It must have made sure that
// the sandbox's process 1 is at the other end.
type Dialer func(ctx context.Context) (net.Conn, error)

// Options tune a Machine. The zero value is good.
type Options struct {
	Log *slog.Logger // nil discards
	// Client names this host towards the guest; a random name by default. A
	// later Machine with the same name and a higher Epoch takes over the wires
	// of an earlier one.
	Client string
	Epoch  uint64
	// DialPatience is how long a guest that does not listen yet is waited for.
	// Default 5 s.
	DialPatience time.Duration
	// MaxBreaks is how many times a wire may break within BreakWindow before
	// the sandbox is declared broken. Defaults 8 in 1 min.
	MaxBreaks   int
	BreakWindow time.Duration
	// Kill ends the sandbox from outside. It is called when the guest does not
	// end a command in time. Default: nothing.
	Kill func(ctx context.Context) error
	// Once says that the machine is used for one command: then that has a wire
	// of its own, which takes less time to make than one that carries many.
	Once bool
}

func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Log == nil {
		out.Log = slog.New(slog.DiscardHandler)
	}
	if out.Client == "" {
		out.Client = wire.NewID()
	}
	if out.DialPatience == 0 {
		out.DialPatience = 5 * time.Second
	}
	if out.MaxBreaks == 0 {
		out.MaxBreaks = 8
	}
	if out.BreakWindow == 0 {
		out.BreakWindow = time.Minute
	}
	return out
}

// Machine is one sandbox, seen from the host. It connects when it is first
// used and again when the wire broke. Its methods are safe for concurrent use.
type Machine struct {
	dial    Dialer
	options Options
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	control *link // for commands
	bulk    *link // for what is large, so that it does not delay them

	transfers chan struct{} // one for each operation on files under way
	watches   chan struct{} // one for each watch
	ports     chan struct{} // one for each connection to a port, and each open port
	lines     *lines        // for files
	briefs    *lines        // for commands that are over soon
	execs     atomic.Int64

	finished finished

	asides sync.WaitGroup // what nobody waits for but Close

	mu     sync.Mutex
	epoch  uint64
	breaks []time.Time
	broken error
}

// New returns the machine behind dial. It connects to nothing yet.
func New(dial Dialer, options *Options) *Machine {
	m := &Machine{dial: dial, options: options.withDefaults()}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.epoch = m.options.Epoch
	m.transfers, m.watches, m.ports = make(chan struct{}, maxTransfers), make(chan struct{}, maxWatches), make(chan struct{}, maxPortStreams)
	m.control, m.bulk = newLink(m, wire.KindControl), newLink(m, wire.KindBulk)
	m.lines, m.briefs = newLines(m.bulk, wire.MaxDirect), newLines(m.control, wire.MaxDirectCommands)
	return m
}

// Ping returns nil if the guest answers.
func (m *Machine) Ping(ctx context.Context) error {
	return m.ask(ctx, &question{Request: &wire.Request{Op: wire.OpPing}}, &struct{}{})
}

// Reach returns nil if the guest answers. A wire that has to be made for that is
// greeted by the guest, which is an answer.
func (m *Machine) Reach(ctx context.Context) error {
	made, err := m.control.made(ctx)
	if made || err != nil {
		return err
	}
	return m.Ping(ctx)
}

// Info asks the guest about itself and its sandbox. Do not base decisions of
// trust on the answer: it comes from inside.
func (m *Machine) Info(ctx context.Context) (*wire.Info, error) {
	var info wire.Info
	if err := m.ask(ctx, &question{Request: &wire.Request{Op: wire.OpInfo}}, &info); err != nil {
		return nil, err
	}
	return &info, nil
}

// Close ends the wires. Commands under way fail with ErrClosed, and are ended
// by the guest after a while. When it returns, nothing dials any more on behalf
// of the machine itself.
func (m *Machine) Close() error {
	m.mu.Lock()
	m.cancel()
	m.mu.Unlock()
	m.lines.close()
	m.briefs.close()
	m.control.close()
	m.bulk.close()
	m.asides.Wait()
	return nil
}

// aside does work that no caller waits for, and that ends with m.ctx. A machine
// that is closed does none.
func (m *Machine) aside(work func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() == nil {
		m.asides.Go(work)
	}
}

// fail declares the sandbox broken, for good.
func (m *Machine) fail(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil {
		m.broken = broken(err)
		m.options.Log.Warn("sandbox declared broken", "error", err)
	}
	return m.broken
}

// usable returns why the machine cannot be used any more, or nil.
func (m *Machine) usable() error {
	if m.ctx.Err() != nil {
		return ErrClosed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken
}

// noteBreak counts a wire that broke, and declares the sandbox broken when it
// happens too often.
func (m *Machine) noteBreak(why error) {
	if errors.Is(why, wire.ErrProtocol) {
		_ = m.fail(why)
		return
	}
	now := time.Now()
	m.mu.Lock()
	for len(m.breaks) > 0 && now.Sub(m.breaks[0]) > m.options.BreakWindow {
		m.breaks = m.breaks[1:]
	}
	m.breaks = append(m.breaks, now)
	tooMany := len(m.breaks) > m.options.MaxBreaks
	m.mu.Unlock()
	if tooMany {
		_ = m.fail(errors.New("its wire broke too often"))
	}
}

func (m *Machine) nextEpoch() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	return m.epoch
}
