package headstart

import (
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is one at work in a program that has a runtime.
type Call struct{ call }

// Prepare is prepare, with the arguments and the environment of a Go program.
func (c *Call) Prepare(args []string, environ Vector) bool { return c.prepare(args, environ.vector) }

// Ask asks for the command, and tells whether it has.
func (c *Call) Ask(args []string, environ Vector) bool {
	c.asked = c.Prepare(args, environ) && c.ask()
	if !c.asked {
		c.forget()
	}
	return c.asked
}

// Hear waits for the command, as it does when there is no runtime that would have
// to wait with it: whoever is to answer has done so before.
func (c *Call) Hear() (code int, over bool) { return c.hear() }

// Follow has it attend to a command that has started, over a wire.
func (c *Call) Follow(wire *os.File) {
	c.conn, c.started, c.line.stdin = descriptor(wire.Fd()+1), true, true
}

// Patience is how long a command is waited for.
const Patience = patience

// Narrow has the wire take as little at once as can be.
func (c *Call) Narrow() error {
	return unix.SetsockoptInt(int(c.conn.number()), unix.SOL_SOCKET, unix.SO_SNDBUF, 1)
}

// Streams sets input and outputs.
func (c *Call) Streams(in, out, problems *os.File) {
	for to, f := range map[*descriptor]*os.File{&c.input: in, &c.outputs[0]: out, &c.outputs[1]: problems} {
		if *to = 0; f != nil {
			*to = descriptor(f.Fd() + 1)
		}
	}
}

// Take is what is left to do.
func (c *Call) Take() (*Begun, error) { return c.take() }

// Close gives back what a program would by its end.
func (c *Call) Close() { c.forget() }

// Holds tells whether descriptors are open.
func (c *Call) Holds() bool { return c.lease != 0 || c.conn != 0 }

// Reset makes a call as new.
func (c *Call) Reset() { c.call = call{} }

// What a guest may have said.
const (
	Silence = silence
	Unclear = unclear
	End     = end
)

// Understand says what a guest has said, the code of a command that ended, and
// what is left for others.
func (c *Call) Understand(frames []byte) (said saying, code int, left []byte) {
	c.told = copy(c.heard[:], frames)
	said = c.understand()
	return said, c.code, c.heard[:c.told]
}

// Vector is strings in the kernel's form.
type Vector struct {
	vector
	texts    [][]byte
	pointers []unsafe.Pointer
}

// NewVector makes one.
func NewVector(texts ...string) Vector {
	var v Vector
	for _, text := range texts {
		bytes := append([]byte(text), 0)
		v.texts, v.pointers = append(v.texts, bytes), append(v.pointers, unsafe.Pointer(&bytes[0]))
	}
	v.pointers = append(v.pointers, nil)
	v.first = unsafe.Pointer(&v.pointers[0])
	return v
}

// Stack is the first stack of a process.
func Stack(t *testing.T, args, environ []string) (gotArgs, gotEnviron []string) {
	t.Helper()
	a, e := NewVector(args...), NewVector(environ...)
	stack := slices.Concat([]unsafe.Pointer{nil}, a.pointers, e.pointers)
	*(*int)(unsafe.Pointer(&stack[0])) = len(args)
	argv, envv := vectors(unsafe.Pointer(&stack[0]))
	return all(argv), all(envv)
}

func all(v vector) (texts []string) {
	for i := 0; ; i++ {
		text, ok := v.at(i)
		if !ok {
			return texts
		}
		texts = append(texts, text)
	}
}
