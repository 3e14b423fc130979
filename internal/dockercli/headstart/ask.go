package headstart

import (
	"encoding/binary"
	"unsafe"

	"github.com/atoll-run/atoll/internal/dockercli/entry"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/wire"
)

// compose writes down what the guest is asked for.
func (c *call) compose(e *entry.Entry) bool {
	dir := c.line.workdir
	if dir == "" {
		dir = e.Workdir
	}
	if !wire.ValidID(e.Process) || !c.name() {
		return false
	}
	exec := wire.Exec{
		ID: c.id, Argv: texts(c.line.argv), Env: texts(c.variables[:c.count]), Dir: wire.Text(dir),
		Stdin: c.line.stdin, GraceMs: machine.DefaultGrace.Milliseconds(), While: e.Process,
	}
	var ok bool
	c.message, ok = wire.AppendOnce(c.request[:0], c.client, &exec)
	return ok
}

// ask sends it. What is not sent whole starts nothing.
func (c *call) ask() bool { return c.conn.send(c.message) }

// name chooses names for this client and for its command.
func (c *call) name() bool {
	var numbers [32]byte
	if !random(&numbers) {
		return false
	}
	var names [2]string
	for i := range names {
		var text [32]byte
		b := numbers[16*i:]
		names[i] = c.join(unsafe.String(&text[0], len(wire.AppendID(text[:0], binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])))))
	}
	c.client, c.id = names[0], names[1]
	return c.id != ""
}

// texts are strings as they travel.
func texts(s []string) []wire.Text {
	return unsafe.Slice((*wire.Text)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
