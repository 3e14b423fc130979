package machine

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

// dial asks a wire for a token and opens a direct connection that belongs to it.
func (p *directPool) dial(ctx context.Context) (*directConn, error) {
	m := p.machine
	parent, err := p.dialer.get(ctx)
	if err != nil {
		return nil, err
	}
	if p.dialer.kind == wire.KindControl && !parent.features.Has(wire.FeatureDirectExec) {
		return nil, fmt.Errorf("commands on direct connections: %w", ErrUnsupported)
	}
	var direct wire.Direct
	ask := &UnaryCall{Request: &wire.Request{Op: wire.OpFileDirect, File: &wire.File{}}}
	if err := m.callOn(ctx, parent, ask, &direct); err != nil {
		return nil, err
	}
	begin := time.Now()
	conn, err := m.dial(ctx)
	if err != nil {
		return nil, asLost(err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })()
	hello := m.helloOn(conn, wire.KindDirect)
	hello.Token = direct.Token
	if _, err = wire.Handshake(conn, hello); err != nil {
		conn.Close()
		return nil, asLost(err)
	}
	if time.Since(begin) > slowDialTime {
		p.mu.Lock()
		p.limit = min(p.limit, 1)
		p.mu.Unlock()
	}
	c := p.newConn(conn, parent)
	go c.watch()
	return c, nil
}

// dialUnbound opens a direct connection without a parent. Its first request goes
// out with the hello, which the caller sends.
func (p *directPool) dialUnbound(ctx context.Context) (*directConn, error) {
	conn, err := p.machine.dial(ctx)
	if err != nil {
		return nil, asLost(err)
	}
	c := p.newConn(conn, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	if !p.add(c) {
		return nil, ErrClosed
	}
	return c, nil
}

func (p *directPool) newConn(conn net.Conn, parent *wireConn) *directConn {
	fast := socket.Wrap(conn)
	c := &directConn{conn: fast, frames: wire.NewReader(fast), parent: parent, closed: make(chan struct{})}
	c.idleTimer = time.AfterFunc(directIdleTime, func() { p.onIdleTimer(c) })
	c.idleTimer.Stop()
	return c
}
