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
	// DialTimeout is how long a guest that does not listen yet is waited for.
	// Default 5 s.
	DialTimeout time.Duration
	// MaxBreaks is how many times a wire may break within BreakWindow before
	// the sandbox is declared broken. Defaults 8 in 1 min.
	MaxBreaks   int
	BreakWindow time.Duration
	// Kill ends the sandbox from outside. It is called when the guest does not
	// end a command in time. Default: nothing.
	Kill func(ctx context.Context) error
	// Direct runs each command on a direct connection without a parent, whose
	// first request goes out with the hello. That is the quickest way to a first
	// command, but a command ends when its connection breaks. A guest without the
	// feature runs it over a stream.
	Direct bool
	// Recreate is the command that replaces the sandbox, for errors that only a
	// newer guest mends. Default "atoll sandbox recreate".
	Recreate string
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
	if out.Recreate == "" {
		out.Recreate = "atoll sandbox recreate"
	}
	if out.DialTimeout == 0 {
		out.DialTimeout = 5 * time.Second
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
	control *wireDialer // for commands
	bulk    *wireDialer // for what is large, so that it does not delay them

	transfers  chan struct{} // one for each operation on files under way
	watches    chan struct{} // one for each watch
	followers  chan struct{} // one for each Follow
	ports      chan struct{} // one for each connection to a port, and each open port
	groupConns chan struct{} // one for each connection of a group, and accept under way
	fileConns  *directPool   // for files
	execConns  *directPool   // for commands that are over soon
	execs      atomic.Int64

	unacked resultIDs

	background sync.WaitGroup // work that only Close waits for

	mu     sync.Mutex
	epoch  uint64
	breaks []time.Time
	broken error
	groups map[groupKey]*portGroup
}

// New returns the machine behind dial. It connects to nothing yet.
func New(dial Dialer, options *Options) *Machine {
	m := &Machine{dial: dial, options: options.withDefaults()}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.epoch = m.options.Epoch
	m.followers = make(chan struct{}, MaxFollowers)
	m.transfers, m.watches, m.ports = make(chan struct{}, maxTransfers), make(chan struct{}, MaxWatches), make(chan struct{}, maxPortStreams)
	m.groupConns, m.groups = make(chan struct{}, maxGroupConns), map[groupKey]*portGroup{}
	m.control, m.bulk = newWireDialer(m, wire.KindControl), newWireDialer(m, wire.KindBulk)
	m.fileConns, m.execConns = newDirectPool(m.bulk, wire.MaxDirect), newDirectPool(m.control, wire.MaxDirectCommands)
	return m
}

// Ping returns nil if the guest answers.
func (m *Machine) Ping(ctx context.Context) error {
	return m.Call(ctx, &UnaryCall{Request: &wire.Request{Op: wire.OpPing}}, &struct{}{})
}

// Reach returns nil if the guest answers. If a wire has to be dialled for that,
// its handshake is the answer.
func (m *Machine) Reach(ctx context.Context) error {
	made, err := m.control.connectFirst(ctx)
	if made || err != nil {
		return err
	}
	return m.Ping(ctx)
}

// Info returns what the guest reports about itself and its sandbox. Do not base
// decisions of trust on it: it comes from inside.
func (m *Machine) Info(ctx context.Context) (*wire.Info, error) {
	var info wire.Info
	if err := m.Call(ctx, &UnaryCall{Request: &wire.Request{Op: wire.OpInfo}}, &info); err != nil {
		return nil, err
	}
	return &info, nil
}

// Close ends the wires. Commands under way fail with ErrClosed, and are ended
// by the guest after a while. When it returns, nothing of the machine dials any
// more.
func (m *Machine) Close() error {
	m.mu.Lock()
	m.cancel()
	m.mu.Unlock()
	m.fileConns.close()
	m.execConns.close()
	m.control.close()
	m.bulk.close()
	m.background.Wait()
	return nil
}

// goBackground does work that no caller waits for, and that ends with m.ctx. A machine
// that is closed does none.
func (m *Machine) goBackground(work func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx.Err() == nil {
		m.background.Go(work)
	}
}

// markBroken declares the sandbox broken, for good.
func (m *Machine) markBroken(err error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil {
		m.broken = asBroken(err)
		m.options.Log.Warn("sandbox declared broken", "error", err)
	}
	return m.broken
}

// BrokenIf declares the sandbox broken if err is what no honest guest causes. It
// returns the error to report.
func (m *Machine) BrokenIf(err error) error {
	if errors.Is(err, wire.ErrProtocol) {
		return m.markBroken(err)
	}
	return err
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

// countBreak counts a wire that broke, and declares the sandbox broken when it
// happens too often.
func (m *Machine) countBreak(why error) {
	if errors.Is(why, wire.ErrProtocol) {
		_ = m.markBroken(why)
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
		_ = m.markBroken(tooManyBreaks(why))
	}
}

// tooManyBreaks is the error of a wire that broke too often, and why it did at last. It does
// not wrap that: the wire is not dialled again.
func tooManyBreaks(why error) error {
	text := "its wire broke too often"
	if why != nil {
		text += ": " + why.Error()
	}
	return errors.New(text)
}

func (m *Machine) nextEpoch() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	return m.epoch
}
