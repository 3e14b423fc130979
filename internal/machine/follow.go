package machine

import (
	"context"
	"fmt"
	"math"

	"github.com/atoll-run/atoll/internal/wire"
)

// MaxFollowers bounds the followers of one machine.
const MaxFollowers = 32

// OutputPart is a part of what a command in the background wrote.
type OutputPart struct {
	Stderr bool  // of standard error, else of standard output
	Offset int64 // of Bytes in all that was written there
	Lost   int64 // bytes before it that are not there any more
	Bytes  []byte
}

// Follow calls take with what a command in the background writes, from the given
// offsets on, and returns its result. While take does not return, the command waits
// once its buffers are full: from when Follow began nothing is lost. Of what was
// written before, the beginning and the end are there. Ending ctx does not end the
// command.
func (m *Machine) Follow(ctx context.Context, id string, stdout, stderr int64, take func(*OutputPart) error) (*Result, error) {
	if stdout < 0 || stderr < 0 {
		return nil, fmt.Errorf("%w: negative offset", ErrInvalid)
	}
	if len(m.followers) == cap(m.followers) {
		return nil, fmt.Errorf("%w: %d followers", ErrBusy, MaxFollowers)
	}
	op, err := m.OpenOp(ctx, &OpRequest{
		Request: &wire.Request{Op: wire.OpFollow, Attach: &wire.Attach{ID: id, Stdout: stdout, Stderr: stderr}}, Timeout: noTimeout, slots: m.followers,
	})
	if err != nil {
		return nil, err
	}
	defer op.Close()
	f := &logFollower{op: op, next: [2]int64{stdout, stderr}, take: take}
	return f.run()
}

// logFollower reads the frames of one Follow.
type logFollower struct {
	op   *StreamOp
	next [2]int64 // offsets of what comes next
	lost [2]int64 // since the last part
	take func(*OutputPart) error
}

// run passes frames on until the exit.
func (f *logFollower) run() (*Result, error) {
	for {
		frame, err := f.op.Next()
		if err != nil {
			return nil, err
		}
		switch frame.Type {
		case wire.FrameExit:
			var exit wire.Exit
			if err := f.op.Decode(frame, &exit); err != nil {
				return nil, err
			}
			return resultOf(&exit), nil
		case wire.FrameStdout, wire.FrameStderr:
			err = f.pass(int(frame.Type-wire.FrameStdout), frame.Payload)
		case wire.FrameGap:
			err = f.skip(frame)
		default:
			err = f.op.UnexpectedFrame(frame)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (f *logFollower) pass(stream int, b []byte) error {
	part := &OutputPart{Stderr: stream == 1, Offset: f.next[stream], Lost: f.lost[stream], Bytes: b}
	f.next[stream] += int64(len(b))
	f.lost[stream] = 0
	return f.take(part)
}

// skip notes bytes that the guest has dropped.
func (f *logFollower) skip(frame wire.Frame) error {
	var gap wire.Gap
	if err := f.op.Decode(frame, &gap); err != nil {
		return err
	}
	stream := int(gap.Stream) - int(wire.FrameStdout)
	if stream < 0 || stream > 1 || gap.Bytes <= 0 || gap.Bytes > math.MaxInt64/2-f.next[stream] {
		return f.op.Violation("gap of %d bytes in stream %d", gap.Bytes, gap.Stream)
	}
	f.next[stream] += gap.Bytes
	f.lost[stream] += gap.Bytes
	return nil
}
