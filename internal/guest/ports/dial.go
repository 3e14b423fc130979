package ports

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// dialTimeout bounds the wait for a process in the sandbox to accept.
const dialTimeout = 5 * time.Second

// dial connects the host to a port inside.
func (c *Call) dial(p *wire.Port) error {
	if p.Port < 1 || p.Port > 65535 {
		return wire.Fail(wire.CodeInvalid, "the port makes no sense")
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, err := network.Dial(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)))
	if errors.Is(err, unix.ECONNREFUSED) || err != nil && missingProtocol(err) {
		conn, err = network.Dial(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(p.Port)))
	}
	if err != nil {
		return toWireError(err)
	}
	return c.relay().run(conn, wire.Caller{Port: p.Port, Peer: conn.LocalAddr().String()})
}

// toWireError turns an error of the kernel into one with the wire's code.
func toWireError(err error) error {
	code := wire.CodeInternal
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return wire.Fail(wire.CodePortTaken, "something else in the sandbox listens there")
	// A listener that is closed during a connect resets the connection.
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ECONNRESET), missingProtocol(err):
		return wire.Fail(wire.CodeRefused, "nothing in the sandbox listens there")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, unix.ETIMEDOUT):
		code = wire.CodeTimeout
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		code = wire.CodeForbidden
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.ENOMEM):
		code = wire.CodeExhausted
	}
	return wire.Fail(code, err.Error())
}
