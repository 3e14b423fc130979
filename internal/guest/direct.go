package guest

import (
	"crypto/rand"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

const (
	// tokenLife is how long a token is valid.
	tokenLife = wire.HelloTimeout
	// maxDirectWires bounds the direct connections of all hosts together that
	// belong to a wire.
	maxDirectWires = 128
	// maxUnbound bounds those without a parent: the guest would not keep track of
	// more commands.
	maxUnbound = maxProcesses
	// drainTimeout bounds how long the rest of a refused request is read.
	drainTimeout = time.Second
)

// directWires counts the direct connections, and keeps the tokens that admit more.
type directWires struct {
	mu     sync.Mutex
	tokens map[string]reservation
	open   map[*hostWire]int // by parent, reserved ones included
	total  int

	unbound int // those without a parent
}

// reservation is a token that was not redeemed yet.
type reservation struct {
	parent *hostWire
	expiry *time.Timer
}

func newDirectWires() *directWires {
	return &directWires{tokens: map[string]reservation{}, open: map[*hostWire]int{}}
}

// reserveDirect answers with a token for one direct connection.
func (c *call) reserveDirect() error {
	token, err := c.server.direct.reserve(c.wire)
	if err != nil {
		return err
	}
	return c.result(wire.Direct{Token: token})
}

func (d *directWires) reserve(parent *hostWire) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[parent] >= mostDirect(parent.key.kind) || d.total >= maxDirectWires {
		return "", wire.Fail(wire.CodeTooMany, "too many direct wires")
	}
	token := rand.Text()
	d.tokens[token] = reservation{parent, time.AfterFunc(tokenLife, func() {
		if d.redeem(token) != nil {
			d.release(parent)
		}
	})}
	d.open[parent]++
	d.total++
	return token, nil
}

// mostDirect returns how many direct connections may belong to one wire of a kind.
func mostDirect(kind wire.Kind) int {
	if kind == wire.KindControl {
		return wire.MaxDirectCommands
	}
	return wire.MaxDirect
}

// redeem removes a token and returns its wire, or nil if the token is not valid.
func (d *directWires) redeem(token string) *hostWire {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.tokens[token]
	if !ok {
		return nil
	}
	p.expiry.Stop()
	delete(d.tokens, token)
	return p.parent
}

func (d *directWires) release(parent *hostWire) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total--
	if d.open[parent]--; d.open[parent] == 0 {
		delete(d.open, parent)
	}
}

// admitUnbound counts a direct connection without a parent, until it is released.
func (d *directWires) admitUnbound() (release func(), ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.unbound >= maxUnbound {
		return nil, false
	}
	d.unbound++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.unbound--
	}, true
}

// serveDirect answers the requests of a direct connection until it ends, or the
// wire that it belongs to does.
func (s *server) serveDirect(conn net.Conn, hello *wire.Hello, welcome *wire.Welcome) error {
	if hello.Token == "" {
		return s.serveUnbound(conn, welcome, hello.Fence)
	}
	parent := s.direct.redeem(hello.Token)
	if parent == nil || parent.key.client != hello.Client {
		return wire.WriteWelcome(conn, &wire.Welcome{Error: wire.Fail(wire.CodeStale, "the token is not, or no longer, good")})
	}
	defer s.direct.release(parent)
	if !parent.addDirect(conn) {
		return net.ErrClosed
	}
	defer parent.removeDirect(conn)
	return s.serveRequests(conn, welcome, &call{server: s, wire: parent, direct: true})
}

// serveUnbound answers the requests of a direct connection without a parent. Its
// first came with the hello; its end ends the command.
func (s *server) serveUnbound(conn net.Conn, welcome *wire.Welcome, owner uint64) error {
	release, ok := s.direct.admitUnbound()
	if !ok {
		return wire.WriteWelcome(conn, &wire.Welcome{Error: wire.Fail(wire.CodeTooMany, "too many commands run in this sandbox")})
	}
	defer release()
	w := &hostWire{owner: owner, conn: conn}
	s.wires.own(w)
	defer s.wires.disown(w)
	return s.serveRequests(conn, welcome, &call{server: s, wire: w, direct: true, unbound: true})
}

// serveRequests welcomes the host and answers one request after the other.
func (s *server) serveRequests(conn net.Conn, welcome *wire.Welcome, c *call) error {
	if err := wire.WriteWelcome(conn, welcome); err != nil {
		return err
	}
	c.stream = socket.Wrap(conn)
	c.reader = wire.NewReader(c.stream)
	if c.unbound { // the first request belongs to the handshake
		_ = c.stream.SetReadDeadline(time.Now().Add(wire.HelloTimeout))
	}
	var owed *process // the process whose result the host may not have received yet
	for {
		req, err := c.reader.Request()
		if err == nil {
			_ = c.stream.SetReadDeadline(time.Time{})
			if owed != nil { // the host goes on: it has the result
				s.table.forget(owed.id)
			}
			owed, err = c.serveDirect(req)
			s.releaser.schedule()
		}
		if err != nil {
			if owed != nil {
				s.awaitReattach(owed, c.unbound)
			}
			return err
		}
	}
}

// serveDirect answers one request of a direct connection. An error ends it.
func (c *call) serveDirect(req *wire.Request) (owed *process, err error) {
	c.data = nil
	switch req.Op {
	case wire.OpAckLast:
		return nil, nil
	case wire.OpExec:
		err = wire.WithPart(req.Exec, func(e *wire.Exec) error { owed, err = c.execDirect(e); return err })
	default:
		err = c.dispatchDirect(req)
	}
	if err == nil || owed != nil || errors.Is(err, errStreamed) {
		return owed, err
	}
	return nil, c.refuseDirect(req.Op, err)
}

// directOps are the operations of a direct connection, and whether the host sends
// content after the request.
var directOps = map[wire.Op]bool{wire.OpFileRead: false, wire.OpFilePull: false, wire.OpFileWrite: true, wire.OpFilePush: true}

func (c *call) dispatchDirect(req *wire.Request) error {
	if _, ok := directOps[req.Op]; !ok || c.unbound {
		return wire.Fail(wire.CodeUnknownOp, "a direct wire does not do "+string(req.Op))
	}
	return c.dispatch(req)
}

// refuseDirect sends an error. The connection goes on if the rest of the request is
// within MaxDrain bytes, else it ends.
func (c *call) refuseDirect(op wire.Op, why error) error {
	_ = c.stream.SetDeadline(time.Now().Add(drainTimeout))
	if err := wire.WriteJSON(c.stream, wire.FrameError, wire.AsError(why)); err != nil {
		return err
	}
	if directOps[op] && !c.drained() {
		return why
	}
	return c.stream.SetDeadline(time.Time{})
}

// content returns what the host sends after the request.
func (c *call) content() *wire.Data {
	if c.data == nil {
		c.data = c.reader.Data()
	}
	return c.data
}

// drained reads the rest of the content, and reports whether it was within MaxDrain.
func (c *call) drained() bool {
	n, err := io.CopyN(io.Discard, c.content(), wire.MaxDrain+1)
	return errors.Is(err, io.EOF) && n <= wire.MaxDrain
}
