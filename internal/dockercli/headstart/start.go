package headstart

import (
	"unsafe"

	"github.com/atoll-run/atoll/internal/wire"
)

// Entry is the first instruction of a program that is linked with -E. It calls
// begin, and then the runtime.
func Entry()

// What Entry gives Go code in place of a goroutine, and of a thread that has one.
var (
	nobody [64]uintptr
	thread [2]uintptr
)

// Entry, which is no Go code, uses these.
var _, _, _ = begin, &nobody, &thread

// here is the call that this process is.
var here call

// begin is given the stack as the kernel has prepared it. When it returns, the
// runtime starts.
func begin(stack unsafe.Pointer) {
	args, environ := vectors(stack)
	words, ok := here.words(args)
	if !ok || !here.streams() || !here.prepare(words, environ) || !here.ask() {
		here.forget()
		return
	}
	here.asked = true
	if code, over := here.hear(); over {
		exit(code)
	}
}

// call is one command line at work. It has room for what it needs.
type call struct {
	args [maxWords]string
	line line

	text [64 << 10]byte // what was read, and what was put together
	used int

	variables [maxWords]string
	count     int

	request     [96 << 10]byte
	message     []byte // in it
	client, id  string
	lease, conn descriptor

	asked   bool // the guest may have started the command
	started bool // it has said so
	spoken  bool // the command has said something
	hurries bool // and is waited for no longer than a moment since
	code    int  // of its exit

	heard [8 << 10]byte // from the guest
	told  int           // so much of it

	input   descriptor
	outputs [2]descriptor
	typed   [wire.HeaderSize + maxInput]byte // a frame of input
	owed    int                              // so much of it was not passed on
	ended   bool                             // there is no more input, and the guest knows
}

// maxWords is how many arguments, and how many variables, there is room for.
const maxWords = 256

// streams are those of the program, which has to have them all: what is opened next
// would be taken for one that is missing.
func (c *call) streams() bool {
	c.input, c.outputs = stdin, [...]descriptor{stdout, stderr}
	return c.input.isOpen() && c.outputs[0].isOpen() && c.outputs[1].isOpen()
}

// prepare finds out what to ask of whom.
func (c *call) prepare(args []string, environ vector) bool {
	state, ok := c.stateDir(environ)
	if !ok || !c.line.read(args) {
		return false
	}
	e, ok := c.find(state)
	if !ok || !c.environment(&e) || !c.share(state, &e) || !c.dial(&e) {
		return false
	}
	return c.compose(&e)
}

// forget gives back what a call holds that has asked for nothing.
func (c *call) forget() {
	c.lease.close()
	c.conn.close()
}
