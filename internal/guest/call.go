package guest

import (
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/files"
	"github.com/atoll-run/atoll/internal/guest/ports"
	"github.com/atoll-run/atoll/internal/wire"
)

// maxWait bounds the waiting time of status, logs and write.
const maxWait = 30 * time.Second

// call is one request of a host.
type call struct {
	server  *server
	wire    *hostWire
	stream  net.Conn
	reader  *wire.Reader
	direct  bool       // stream is a direct connection
	unbound bool       // and it has no parent: its end ends the command
	data    *wire.Data // see content
}

// dispatch performs the operation. An error it returns goes to the host.
func (c *call) dispatch(req *wire.Request) error {
	switch req.Op {
	case wire.OpPing:
		return c.result(struct{}{})
	case wire.OpInfo:
		return c.result(c.server.info())
	case wire.OpExec:
		return wire.WithPart(req.Exec, c.exec)
	case wire.OpAttach:
		return wire.WithPart(req.Attach, c.attach)
	case wire.OpLogs:
		return wire.WithPart(req.Attach, c.logs)
	case wire.OpFollow:
		return wire.WithPart(req.Attach, c.followLog)
	case wire.OpFileDirect:
		return c.reserveDirect()
	case wire.OpIdentify:
		return wire.WithPart(req.Identity, c.identify)
	case wire.OpTerminate:
		return wire.WithPart(req.Terminate, c.terminate)
	}
	if files.Handles(req.Op) {
		if err := c.server.quota.allow(req.Op); err != nil {
			return err
		}
		return wire.WithPart(req.File, func(f *wire.File) error { return c.server.files.Serve(c.forFiles(), req.Op, f) })
	}
	if ports.Handles(req.Op) {
		call := &ports.Call{Stream: c.stream, Reader: c.reader}
		return wire.WithPart(req.Port, func(p *wire.Port) error { return c.server.ports.Serve(call, req.Op, p) })
	}
	if op, ok := grantOps[req.Op]; ok {
		return wire.WithPart(req.Grant, func(g *wire.Grant) error { return op(c, g) })
	}
	op, ok := targetOps[req.Op]
	if !ok {
		return wire.Fail(wire.CodeUnknownOp, "the guest does not know the operation "+string(req.Op))
	}
	return wire.WithPart(req.Target, func(t *wire.Target) error { return op(c, t) })
}

// forFiles returns the call for package files.
func (c *call) forFiles() *files.Call {
	return &files.Call{Stream: c.stream, Reader: c.reader, Content: c.content, Direct: c.direct}
}

// targetOps are the operations on one process.
var targetOps = map[wire.Op]func(*call, *wire.Target) error{
	wire.OpEnd:    (*call).end,
	wire.OpSignal: (*call).signal,
	wire.OpResize: (*call).resize,
	wire.OpWrite:  (*call).write,
	wire.OpList:   (*call).list,
	wire.OpStatus: (*call).status,
	wire.OpForget: (*call).forget,
	wire.OpAckIDs: (*call).settle,
}

func (c *call) result(v any) error { return wire.WriteJSON(c.stream, wire.FrameResult, v) }

// end ends the tree of a process and answers when it is gone, even if output was not
// read.
func (c *call) end(t *wire.Target) error {
	p, err := c.server.table.find(t.ID)
	if err != nil {
		return err
	}
	p.end(byRequest, graceOf(t.GraceMs))
	gone := p.endTreeOnce()
	if t.Forget && !p.background {
		p.resultUnwanted.Store(true)
		if !p.out.hasReader() {
			go c.server.endAndForget(p)
		}
	}
	if !gone {
		return wire.Fail(wire.CodeStuck, "some processes could not be ended")
	}
	return c.result(struct{}{})
}

// signal sends a signal to a process, or to its whole tree.
func (c *call) signal(t *wire.Target) error {
	p, err := c.server.table.find(t.ID)
	if err != nil {
		return err
	}
	sig := unix.SignalNum(t.Signal)
	switch {
	case sig == 0:
		return wire.Fail(wire.CodeInvalid, "there is no signal "+t.Signal)
	case t.Tree:
		p.tree.Signal(sig)
	case p.over() || !p.tree.Has(p.pid):
		return wire.Fail(wire.CodeNoProcess, "process "+t.ID+" has ended")
	default:
		_ = unix.Kill(p.pid, sig)
	}
	return c.result(struct{}{})
}

func (c *call) resize(t *wire.Target) error {
	p, err := c.server.table.find(t.ID)
	if err != nil {
		return err
	}
	if t.Size == nil {
		return wire.Fail(wire.CodeInvalid, "the size is missing")
	}
	if err := p.stdio.resize(*t.Size); err != nil {
		return err
	}
	return c.result(struct{}{})
}

// write writes input to a background process.
func (c *call) write(t *wire.Target) error {
	p, err := c.server.table.find(t.ID)
	if err != nil {
		return err
	}
	n, err := p.stdio.writeFor(t.Data, waitOf(t.WaitMs))
	if err != nil {
		return err
	}
	if t.EOF && n == len(t.Data) {
		p.stdio.endInput(0)
	}
	return c.result(wire.Written{Bytes: n})
}

func (c *call) list(t *wire.Target) error {
	found := c.server.table.after(t.ID)
	listing := wire.Listing{More: len(found) > wire.ListPage}
	for _, p := range found[:min(len(found), wire.ListPage)] {
		listing.Processes = append(listing.Processes, *p.status())
	}
	return c.result(listing)
}

// status answers at once, or with WaitMs when the process has ended.
func (c *call) status(t *wire.Target) error {
	p, err := c.server.table.find(t.ID)
	if err != nil {
		return err
	}
	if t.WaitMs > 0 {
		select {
		case <-p.done:
		case <-time.After(waitOf(t.WaitMs)):
		case <-c.wire.Done():
		}
	}
	return c.result(p.status())
}

// forget removes a process that has ended from the table.
func (c *call) forget(t *wire.Target) error {
	p, err := c.server.table.find(t.ID)
	if err != nil {
		return err
	}
	if !p.over() {
		return wire.Fail(wire.CodeInvalid, "process "+t.ID+" still runs: end it first")
	}
	c.server.table.forget(t.ID)
	return c.result(struct{}{})
}

// settle removes processes whose results arrived, although their wire broke before the
// host could acknowledge them.
func (c *call) settle(t *wire.Target) error {
	for _, id := range t.IDs {
		if p, err := c.server.table.find(id); err == nil && p.over() && !p.background {
			c.server.table.forget(id)
		}
	}
	return c.result(struct{}{})
}

func waitOf(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), maxWait.Milliseconds())) * time.Millisecond
}
