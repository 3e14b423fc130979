package machine

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// lineLife is how long a direct wire is kept that nobody uses.
	lineLife = 30 * time.Second
	// slowDial is a dial that costs more than a direct wire saves. Then one is
	// kept, and no more are dialled.
	slowDial = 20 * time.Millisecond
)

// line is a direct wire: one transfer after the other, nothing beside it.
type line struct {
	conn   net.Conn
	frames *wire.Reader
	parent *live // which admitted it
	idle   *time.Timer
}

// usable reports whether the line can take another transfer.
func (l *line) usable() bool { return l.parent.alive() }

// lines are the direct wires of a machine.
type lines struct {
	machine *Machine

	mu    sync.Mutex
	idle  []*line
	open  map[*line]bool // all that there are
	count int            // of them, and of those about to be
	limit int            // how many there may be
	shut  bool           // no more
}

func newLines(m *Machine) *lines {
	return &lines{machine: m, open: map[*line]bool{}, limit: wire.MaxDirect}
}

// get returns a direct wire, or nil if there is none to be had: then a stream
// does.
func (ls *lines) get(ctx context.Context) *line {
	if l := ls.pop(); l != nil {
		return l
	}
	if !ls.claim() {
		return nil
	}
	l, err := ls.dial(ctx)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err != nil {
		ls.count--
		if errors.Is(err, ErrUnsupported) { // an older guest
			ls.limit = 0
		}
		return nil
	}
	ls.open[l] = true
	if ls.shut {
		ls.drop(l)
		return nil
	}
	return l
}

// pop takes the line that was used last.
func (ls *lines) pop() *line {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for len(ls.idle) > 0 {
		l := ls.idle[len(ls.idle)-1]
		ls.idle = ls.idle[:len(ls.idle)-1]
		l.idle.Stop()
		if l.usable() {
			return l
		}
		ls.drop(l)
	}
	return nil
}

// drop closes a line for good. The lock is held.
func (ls *lines) drop(l *line) {
	l.conn.Close()
	delete(ls.open, l)
	ls.count--
}

func (ls *lines) claim() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.shut || ls.count >= ls.limit {
		return false
	}
	ls.count++
	return true
}

// dial asks for admission and opens a line.
func (ls *lines) dial(ctx context.Context) (*line, error) {
	m := ls.machine
	parent, err := m.bulk.get(ctx)
	if err != nil {
		return nil, err
	}
	var direct wire.Direct
	ask := &question{Request: &wire.Request{Op: wire.OpFileDirect, File: &wire.File{}}}
	if err := m.askOn(ctx, parent, ask, &direct); err != nil {
		return nil, err
	}
	begin := time.Now()
	conn, err := m.dial(ctx)
	if err != nil {
		return nil, lost(err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })()
	_, err = wire.Greet(conn, &wire.Hello{
		Min: wire.MinVersion, Max: wire.MaxVersion, Client: m.options.Client, Epoch: m.nextEpoch(),
		Kind: wire.KindDirect, Token: direct.Token,
	})
	if err != nil {
		conn.Close()
		return nil, lost(err)
	}
	if time.Since(begin) > slowDial {
		ls.mu.Lock()
		ls.limit = min(ls.limit, 1)
		ls.mu.Unlock()
	}
	return &line{conn: conn, frames: wire.NewReader(conn), parent: parent}, nil
}

// put keeps a line for the next transfer.
func (ls *lines) put(l *line) {
	_ = l.conn.SetDeadline(noDeadline)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.open[l] {
		return
	}
	if !l.usable() {
		ls.drop(l)
		return
	}
	l.idle = time.AfterFunc(lineLife, func() { ls.expire(l) })
	ls.idle = append(ls.idle, l)
}

// expire closes a line that nobody has used for long.
func (ls *lines) expire(l *line) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if i := slices.Index(ls.idle, l); i >= 0 {
		ls.idle = slices.Delete(ls.idle, i, i+1)
		ls.drop(l)
	}
}

// discard closes a line that cannot be used any more.
func (ls *lines) discard(l *line) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.open[l] {
		ls.drop(l)
	}
}

// close closes all lines, whatever they are used for.
func (ls *lines) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.shut = true
	for _, l := range ls.idle {
		l.idle.Stop()
	}
	ls.idle = nil
	for l := range ls.open {
		ls.drop(l)
	}
}
