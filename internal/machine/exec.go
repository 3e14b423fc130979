package machine

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// endPatience is how long a guest has to end a command, beyond its grace.
const endPatience = 4 * time.Second

// Exec runs a command and waits for its end. Cancelling ctx ends the command
// and all its descendants in the sandbox; then the error is ctx's, beside the
// result if there is one. A command that ran into its Timeout is a result, not
// an error.
//
// A Read of Stdin that is under way when the command ends is not waited for.
func (m *Machine) Exec(ctx context.Context, command *Command) (*Result, error) {
	if err := command.check(); err != nil {
		return nil, err
	}
	live, err := m.control.get(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{machine: m, command: command, id: rand.Text()}
	r.outputs = [2]*outlet{
		{w: command.Stdout, limit: command.OutputLimit},
		{w: command.Stderr, limit: command.OutputLimit},
	}
	return r.follow(ctx, live)
}

// run is one command under way.
type run struct {
	machine *Machine
	command *Command
	id      string
	outputs [2]*outlet
}

func (r *run) follow(ctx context.Context, live *live) (*Result, error) {
	stream, err := open(live, r.command.request(r.id))
	if err != nil {
		return nil, r.machine.because(ctx, live, err)
	}
	defer stream.Close()
	stop := context.AfterFunc(ctx, func() { r.end(live) })
	defer stop()
	if r.command.Stdin != nil {
		go feed(stream, r.command.Stdin)
	}
	exit, err := r.read(ctx, live, stream)
	if err != nil {
		return nil, err
	}
	result := resultOf(exit)
	result.Stdout, result.Stderr = r.outputs[0].account(exit.Stdout), r.outputs[1].account(exit.Stderr)
	return result, ctx.Err()
}

// read passes frames on until the exit.
func (r *run) read(ctx context.Context, live *live, stream net.Conn) (*wire.Exit, error) {
	frames := wire.NewReader(stream)
	for {
		frame, err := frames.Frame()
		if err != nil {
			return nil, r.machine.because(ctx, live, err)
		}
		exit, err := r.take(live, frame)
		if exit != nil || err != nil {
			return exit, err
		}
	}
}

func (r *run) take(live *live, frame wire.Frame) (*wire.Exit, error) {
	switch frame.Type {
	case wire.FrameStarted:
		return nil, nil
	case wire.FrameStdout, wire.FrameStderr:
		return nil, r.outputs[frame.Type-wire.FrameStdout].write(frame.Payload)
	case wire.FrameGap:
		var gap wire.Gap
		if err := frame.Decode(&gap); err != nil {
			return nil, r.machine.cut(live, err)
		}
		return nil, nil
	case wire.FrameExit:
		var exit wire.Exit
		if err := frame.Decode(&exit); err != nil {
			return nil, r.machine.cut(live, err)
		}
		return &exit, nil
	case wire.FrameError:
		return nil, r.machine.guestSays(live, frame)
	}
	return nil, r.machine.cut(live, fmt.Errorf("%w: frame %d in the output of a command", wire.ErrProtocol, frame.Type))
}

// end has the guest end the command. A guest that does not is cut off, and the
// sandbox killed from outside if there is a way.
func (r *run) end(live *live) {
	ctx, cancel := context.WithTimeout(context.Background(), r.command.Grace+endPatience)
	defer cancel()
	req := &wire.Request{Op: wire.OpEnd, End: &wire.End{ID: r.id, GraceMs: milliseconds(r.command.Grace)}}
	_ = r.machine.askOn(ctx, live, req, &struct{}{})
}

// feed sends the input.
func feed(stream net.Conn, stdin io.Reader) {
	buf := make([]byte, wire.HeaderSize+wire.MaxFrame)
	for {
		n, err := stdin.Read(buf[wire.HeaderSize:])
		if n > 0 {
			wire.PutHeader(buf, wire.FrameStdin, n)
			if _, err := stream.Write(buf[:wire.HeaderSize+n]); err != nil {
				return
			}
		}
		if err != nil {
			_ = wire.WriteFrame(stream, wire.FrameStdinEOF, nil)
			return
		}
	}
}
