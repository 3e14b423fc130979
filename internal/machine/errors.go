package machine

import (
	"errors"
	"fmt"
	"net"

	"github.com/atoll-run/atoll/internal/wire"
)

// The kinds of failure.
var (
	// ErrLost is a wire that broke or could not be opened. The sandbox may be
	// stopped, paused or restarted; trying again later can help.
	ErrLost = errors.New("the sandbox does not answer")
	// ErrTransport is an ErrLost whose cause is not the guest but what lies between: a
	// server that is away, or that has cut the connection.
	ErrTransport = errors.New("the way to the sandbox is interrupted")
	// ErrNodeLost is a sandbox whose machine does not answer or is gone, through no doing of
	// the sandbox.
	ErrNodeLost = errors.New("the node of the sandbox is lost")
	// ErrBroken is a guest that does not keep to the protocol, or whose wire
	// broke too often. It stays so: the sandbox must be recreated.
	ErrBroken = errors.New("the sandbox is broken")
	// ErrClosed is a machine that was closed on this side.
	ErrClosed = errors.New("the machine is closed")

	// ErrNotFound is a program that is not there: exit status 127.
	ErrNotFound = errors.New("program not found")
	// ErrNotExecutable is a program that is there and cannot run: 126.
	ErrNotExecutable = errors.New("program cannot be run")
	// ErrNoDirectory is a working directory that cannot be entered.
	ErrNoDirectory = errors.New("no such working directory")
	// ErrExhausted is a sandbox without processes, memory or descriptors left.
	ErrExhausted = errors.New("the sandbox is exhausted")
	// ErrInvalid is a command that makes no sense.
	ErrInvalid = errors.New("invalid command")
	// ErrBusy is a sandbox that already does as much as it may at once.
	ErrBusy = errors.New("too much at once")
	// ErrNoProcess is a process that is not, or no longer, known.
	ErrNoProcess = errors.New("no such process")
	// ErrOver is a command that was to run only while another does.
	ErrOver = errors.New("the process that it was to run beside is over")
	// ErrNoGrant is a command under a grant that is not open.
	ErrNoGrant = errors.New("the grant is not open")
	// ErrTaken is a sandbox of a pool that was given to another name already.
	ErrTaken = errors.New("the sandbox was given to another name already")
	// ErrTerminated is a sandbox that its cluster ends: commands in it were ended, and none
	// starts any more.
	ErrTerminated = errors.New("the sandbox was terminated from outside, as by an eviction")
	// ErrUnsupported is what this sandbox, or the guest in it, cannot do.
	ErrUnsupported = errors.New("not supported by the sandbox")
)

// A Transport is a connection to the guest over something that can fail without it, such
// as a server between the two. The loss of it says nothing about the guest, and is not
// counted against it.
type Transport interface {
	// TransportErr returns why the bytes stopped, if the transport was the reason.
	TransportErr() error
	// EndErr returns why the bytes stopped, whatever the reason; nil if they did not, or
	// the reason is unknown.
	EndErr() error
}

// A Fenced connection names the epoch of the gateway that made it. A guest that a later
// gateway has spoken to refuses it.
type Fenced interface {
	Fence() uint64
}

// helloOn returns the hello for a connection.
func (m *Machine) helloOn(conn net.Conn, kind wire.Kind) *wire.Hello {
	hello := wire.NewHello(kind, m.options.Client, m.nextEpoch())
	if f, ok := conn.(Fenced); ok {
		hello.Fence = f.Fence()
	}
	return hello
}

// transportErr returns why the transport of a connection was lost; nil if it was not, or
// if the connection is the guest's own socket.
func transportErr(conn net.Conn) error {
	if t, ok := conn.(Transport); ok {
		return t.TransportErr()
	}
	return nil
}

// endErr returns why a connection ended; nil if the reason is unknown.
func endErr(conn net.Conn) error {
	if t, ok := conn.(Transport); ok {
		return t.EndErr()
	}
	return nil
}

// errExists is a process that is already there, because an earlier request for
// it did arrive.
var errExists = errors.New("process exists")

var kinds = map[wire.Code]error{
	wire.CodeExists:        errExists,
	wire.CodeInvalid:       ErrInvalid,
	wire.CodeNotFound:      ErrNotFound,
	wire.CodeNotExecutable: ErrNotExecutable,
	wire.CodeNoDirectory:   ErrNoDirectory,
	wire.CodeExhausted:     ErrExhausted,
	wire.CodeTooMany:       ErrBusy,
	wire.CodeNoProcess:     ErrNoProcess,
	wire.CodeNoGrant:       ErrNoGrant,
	wire.CodeOver:          ErrOver,
	wire.CodeTaken:         ErrTaken,
	wire.CodeTerminated:    ErrTerminated,
	wire.CodeUnknownOp:     ErrUnsupported,
	wire.CodeUnsupported:   ErrUnsupported,
	wire.CodeNoFeature:     ErrUnsupported,
	wire.CodeVersion:       ErrUnsupported,
}

// guestError is a failure that the guest reported: its message, and our kind.
type guestError struct {
	message string
	kind    error
}

func (e *guestError) Error() string { return e.message }

func (e *guestError) Unwrap() error { return e.kind }

// GuestError turns an error frame's content into an error of this package.
func GuestError(e *wire.Error) error {
	kind := kinds[e.Code]
	if kind == nil {
		kind = fileKinds[e.Code]
	}
	if kind == nil {
		kind = errors.New("internal error of the guest")
	}
	message := wire.Printable(e.Message)
	if message == "" {
		message = kind.Error()
	}
	if e.Subject != "" {
		message = fmt.Sprintf("%.*q: %s", wire.MaxMessage, e.Subject, message)
	}
	return &guestError{message, kind}
}

// ExitStatus is what a shell would report for a command that failed to start:
// 127 if it was not found, 126 if it could not be run, else 125.
func ExitStatus(err error) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return 127
	case errors.Is(err, ErrNotExecutable):
		return 126
	}
	return 125
}

func asLost(err error) error {
	if errors.Is(err, ErrLost) || errors.Is(err, ErrBroken) || errors.Is(err, ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

func asBroken(err error) error {
	if errors.Is(err, ErrBroken) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}
