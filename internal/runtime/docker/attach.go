package docker

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/moby/moby/client"
)

// Transport is a way of opening a wire.
type Transport string

// The transports. A socket needs an engine on this machine; attaching to a
// process that the engine starts in the container works with every engine, and
// costs an engine's exec for each wire.
const (
	TransportAuto   Transport = ""
	TransportSocket Transport = "socket"
	TransportAttach Transport = "attach"
)

// attach opens a wire through the engine: it starts the guest's pump in the
// container and takes its standard streams.
func (i *Instance) attach(ctx context.Context) (net.Conn, error) {
	if err := i.checkRunning(ctx); err != nil {
		return nil, err
	}
	return i.runtime.execIn(ctx, i.id, []string{guestTarget, "pass", "--socket", wireTarget + "/" + socketName})
}

// execIn starts a program in a container and takes its standard streams.
func (r *Runtime) execIn(ctx context.Context, id string, argv []string) (net.Conn, error) {
	made, err := ask(ctx, r.engine, func(c *client.Client) (client.ExecCreateResult, error) {
		return c.ExecCreate(ctx, id, client.ExecCreateOptions{AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: argv})
	})
	if err != nil {
		return nil, err
	}
	held, err := ask(ctx, r.engine, func(c *client.Client) (client.ExecAttachResult, error) {
		return c.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	})
	if err != nil {
		return nil, err
	}
	return &attached{Conn: held.Conn, from: held.Reader}, nil
}

// attached is a process's standard streams as one connection. The engine puts a
// header before every piece of output that says which stream it belongs to.
type attached struct {
	net.Conn
	from io.Reader

	mu   sync.Mutex
	left uint32 // of the piece being read
}

// The header: the stream, three zeros, the length.
const (
	pieceHeader = 8
	pieceOutput = 1
	pieceErrors = 2
	// maxComplaint bounds what is kept of the pump's last words.
	maxComplaint = 1000
)

// Read gives the process's output. Anything on its standard error is its last.
func (a *attached) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.left == 0 {
		if err := a.nextPiece(); err != nil {
			return 0, err
		}
	}
	n, err := a.from.Read(p[:min(len(p), int(a.left))])
	a.left -= uint32(n)
	return n, err
}

func (a *attached) nextPiece() error {
	var header [pieceHeader]byte
	if _, err := io.ReadFull(a.from, header[:]); err != nil {
		return err
	}
	length := binary.BigEndian.Uint32(header[4:])
	switch header[0] {
	case pieceOutput:
		a.left = length
		return nil
	case pieceErrors:
		words, _ := io.ReadAll(io.LimitReader(a.from, int64(min(length, maxComplaint))))
		return fmt.Errorf("the guest's pump: %s", words)
	default:
		return fmt.Errorf("the engine sent stream %d of an exec", header[0])
	}
}
