package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

const (
	// lineLife is how long a direct wire is kept that nobody uses.
	lineLife = 30 * time.Second
	// takenAfter is when a guest is told that its result has come, if no request
	// says so before.
	takenAfter = 2 * time.Millisecond
	// lastWords is how long a guest may take to be told so when the machine closes.
	lastWords = 20 * time.Millisecond
	// commandsSince is the version of the protocol whose direct wires take commands.
	commandsSince = 2
	// lineRest is how long no more are dialled after one could not be had.
	lineRest = time.Second
	// slowDial is a dial that costs more than a direct wire saves. Then one is
	// kept, and no more are dialled.
	slowDial = 20 * time.Millisecond
)

// line is a direct wire: one transfer or command after the other, nothing beside
// it. It ends with its parent.
type line struct {
	conn   net.Conn
	frames *wire.Reader
	parent *live // which admitted it
	idle   *time.Timer
	owes   bool // the guest was not told that its result has come
	closed chan struct{}

	leave func() // set while somebody has the line: see wire.Session.Await
}

// take gives the line to somebody, who waits for the guest until it is released.
func (l *line) take() { l.leave = l.parent.Await() }

func (l *line) release() {
	if l.leave != nil {
		l.leave()
		l.leave = nil
	}
}

// usable reports whether the line can take another transfer.
func (l *line) usable() bool { return l.parent.alive() }

// watch closes the line when its parent ends.
func (l *line) watch() {
	select {
	case <-l.parent.Done():
		l.conn.Close()
	case <-l.closed:
	}
}

// lines are the direct wires that belong to one link of a machine.
type lines struct {
	machine *Machine
	link    *link

	mu    sync.Mutex
	idle  []*line
	open  map[*line]bool // all that there are
	count int            // of them, and of those about to be
	limit int            // how many there may be
	rests time.Time      // until when none are dialled
	shut  bool           // no more
}

func newLines(link *link, limit int) *lines {
	return &lines{machine: link.machine, link: link, open: map[*line]bool{}, limit: limit}
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
	if !ls.admit(l, err) {
		return nil
	}
	return l
}

// spare returns a direct wire that is idle, or nil. Then it sees to it that
// there will be one.
func (ls *lines) spare() *line {
	if l := ls.pop(); l != nil {
		return l
	}
	if ls.claim() {
		ls.machine.aside(func() {
			ctx, cancel := context.WithTimeout(ls.machine.ctx, answerPatience)
			defer cancel()
			if l, err := ls.dial(ctx); ls.admit(l, err) {
				ls.put(l)
			}
		})
	}
	return nil
}

// admit counts a line that was dialled, or could not be.
func (ls *lines) admit(l *line, err error) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err != nil {
		ls.count--
		ls.rests = time.Now().Add(lineRest)
		switch {
		case errors.Is(err, ErrUnsupported): // an older guest
			ls.limit = 0
		case errors.Is(err, ErrBusy):
			ls.limit = min(ls.limit, max(ls.count, 1))
		}
		return false
	}
	ls.open[l] = true
	l.take()
	if ls.shut {
		ls.drop(l)
		return false
	}
	return true
}

// forbid makes an end of all lines: the guest does not know what they are for.
func (ls *lines) forbid() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.limit = 0
	for _, l := range ls.idle {
		ls.drop(l)
	}
	ls.idle = nil
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
			l.take()
			return l
		}
		ls.drop(l)
	}
	return nil
}

// drop closes a line for good. The lock is held.
func (ls *lines) drop(l *line) {
	l.idle.Stop()
	l.release()
	close(l.closed)
	l.conn.Close()
	delete(ls.open, l)
	ls.count--
}

func (ls *lines) claim() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.shut || ls.count >= ls.limit || ls.count > 0 && time.Now().Before(ls.rests) {
		return false
	}
	ls.count++
	return true
}

// dial asks for admission and opens a line.
func (ls *lines) dial(ctx context.Context) (*line, error) {
	m := ls.machine
	parent, err := ls.link.get(ctx)
	if err != nil {
		return nil, err
	}
	if ls.link.kind == wire.KindControl && parent.version < commandsSince {
		return nil, fmt.Errorf("commands on direct wires: %w", ErrUnsupported)
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
	quick := socket.Of(conn)
	l := &line{conn: quick, frames: wire.NewReader(quick), parent: parent, closed: make(chan struct{})}
	l.idle = time.AfterFunc(lineLife, func() { ls.tick(l) })
	l.idle.Stop()
	go l.watch()
	return l, nil
}

// put keeps a line for the next transfer.
func (ls *lines) put(l *line) {
	_ = l.conn.SetDeadline(noDeadline)
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.open[l] {
		return
	}
	l.release()
	if !l.usable() {
		ls.drop(l)
		return
	}
	ls.idle = append(ls.idle, l)
	if l.owes {
		l.idle.Reset(takenAfter)
	} else {
		l.idle.Reset(lineLife)
	}
}

// tick tells the guest that its result has come, or closes a line that nobody
// has used for long.
func (ls *lines) tick(l *line) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	i := slices.Index(ls.idle, l)
	switch {
	case i < 0:
	case l.owes && l.parent.request(l.conn, &wire.Request{Op: wire.OpTaken}) == nil:
		l.owes = false
		l.idle.Reset(lineLife)
	default:
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

// close closes all lines, whatever they are used for. A guest that was not told
// yet that its result has come would keep it.
func (ls *lines) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.shut = true
	for _, l := range ls.idle {
		if l.owes {
			_ = l.conn.SetWriteDeadline(time.Now().Add(lastWords))
			_ = l.parent.request(l.conn, &wire.Request{Op: wire.OpTaken})
		}
	}
	ls.idle = nil
	for l := range ls.open {
		ls.drop(l)
	}
}
