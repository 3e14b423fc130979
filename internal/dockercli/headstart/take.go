package headstart

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// Begun is a command that a guest was asked for, and that was not over yet.
type Begun struct {
	call *call
	conn net.Conn
}

// Take returns what was begun before the runtime started, nil if nothing was.
func Take() (*Begun, error) { return here.take() }

func (c *call) take() (*Begun, error) {
	if !c.asked {
		return nil, nil
	}
	file := os.NewFile(uintptr(c.conn.number()), "the guest's wire")
	c.conn = 0
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return &Begun{c, &resumed{conn, c.heard[:c.told]}}, nil
}

// Options are those of a machine that goes on with the command.
func (b *Begun) Options() *machine.Options {
	return &machine.Options{Once: true, Client: b.call.client, Begun: &machine.Begun{ID: b.call.id, Conn: b.conn}}
}

// Input is what is left of the input to pass on. b may be nil.
func (b *Begun) Input(rest io.Reader) io.Reader {
	switch {
	case b == nil:
		return rest
	case b.call.ended:
		return strings.NewReader("")
	}
	return io.MultiReader(bytes.NewReader(b.call.typed[wire.HeaderSize:][:b.call.owed]), rest)
}

// resumed is a connection of which something was read already.
type resumed struct {
	net.Conn
	heard []byte
}

func (r *resumed) Read(b []byte) (int, error) {
	if len(r.heard) == 0 {
		return r.Conn.Read(b)
	}
	n := copy(b, r.heard)
	r.heard = r.heard[n:]
	return n, nil
}
