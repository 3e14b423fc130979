package machine

import (
	"context"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// maxLogs bounds the bytes of each output that one Logs returns.
	maxLogs = 1 << 20
	// maxChunks bounds the gaps in them: a guest keeps a beginning and an end.
	maxChunks = 8
)

// LogRequest names a part of the logs.
type LogRequest struct {
	Stdout, Stderr int64         // offsets to begin at
	Max            int64         // bytes of each; 0 and more than 1 MiB mean 1 MiB
	Wait           time.Duration // for something new, at most 30 s
}

// Logs is a part of what a command in the background wrote.
type Logs struct {
	Stdout, Stderr Log
	Process        *Process // as it was then
}

// Log is a part of one output.
type Log struct {
	Chunks []Chunk
	Next   int64 // offset to go on at
}

// Chunk is bytes that were written together; before Offset some may be lost.
type Chunk struct {
	Offset int64
	Bytes  []byte
}

// Logs reads what a command in the background wrote, while it runs and after.
func (m *Machine) Logs(ctx context.Context, id string, from LogRequest) (*Logs, error) {
	if from.Stdout < 0 || from.Stderr < 0 || from.Wait < 0 {
		return nil, fmt.Errorf("%w: negative offset or time", ErrInvalid)
	}
	if from.Max <= 0 || from.Max > maxLogs {
		from.Max = maxLogs
	}
	wc, err := m.bulk.get(ctx)
	if err != nil {
		return nil, err
	}
	type answer struct {
		logs *Logs
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		logs, err := m.fetchLogs(wc, id, from)
		answered <- answer{logs, err}
	}()
	select {
	case a := <-answered:
		return a.logs, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *Machine) fetchLogs(wc *wireConn, id string, from LogRequest) (*Logs, error) {
	overdue := time.AfterFunc(from.Wait+CallTimeout, func() { _ = wc.Close() })
	defer overdue.Stop()
	stream, err := open(wc, &wire.Request{Op: wire.OpLogs, Attach: &wire.Attach{
		ID: id, Stdout: from.Stdout, Stderr: from.Stderr, Max: from.Max, WaitMs: wire.Milliseconds(from.Wait),
	}})
	if err != nil {
		return nil, m.streamError(wc, err)
	}
	defer stream.Close()
	return m.readLogs(wc, stream, from)
}

func (m *Machine) readLogs(wc *wireConn, stream net.Conn, from LogRequest) (*Logs, error) {
	readers := [2]*logReader{{next: from.Stdout, room: from.Max}, {next: from.Stderr, room: from.Max}}
	frames := wire.NewReader(stream)
	for {
		frame, err := frames.Frame()
		if err != nil {
			return nil, m.streamError(wc, err)
		}
		switch frame.Type {
		case wire.FrameResult:
			var status wire.Status
			if err := frame.Decode(&status); err != nil {
				return nil, m.protocolError(wc, err)
			}
			return &Logs{readers[0].log(), readers[1].log(), processOf(&status)}, nil
		case wire.FrameError:
			return nil, m.errorFrame(wc, frame)
		}
		if err := takeLog(readers, frame); err != nil {
			return nil, m.protocolError(wc, err)
		}
	}
}

// takeLog adds a frame of output to the logs.
func takeLog(readers [2]*logReader, frame wire.Frame) error {
	switch frame.Type {
	case wire.FrameStdout, wire.FrameStderr:
		return readers[frame.Type-wire.FrameStdout].add(frame.Payload)
	case wire.FrameGap:
		var gap wire.Gap
		if err := frame.Decode(&gap); err != nil {
			return err
		}
		if gap.Stream == wire.FrameStdout || gap.Stream == wire.FrameStderr {
			return readers[gap.Stream-wire.FrameStdout].skip(gap.Bytes)
		}
	}
	return fmt.Errorf("%w: frame %d in logs", wire.ErrProtocol, frame.Type)
}

// logReader puts one output of the logs together, within its bounds.
type logReader struct {
	chunks []Chunk
	next   int64
	room   int64
}

func (r *logReader) add(b []byte) error {
	if int64(len(b)) > r.room || len(r.chunks) > maxChunks {
		return fmt.Errorf("%w: more logs than asked for", wire.ErrProtocol)
	}
	r.room -= int64(len(b))
	if last := len(r.chunks) - 1; last >= 0 && r.chunks[last].Offset+int64(len(r.chunks[last].Bytes)) == r.next {
		r.chunks[last].Bytes = append(r.chunks[last].Bytes, b...)
	} else {
		r.chunks = append(r.chunks, Chunk{r.next, append([]byte(nil), b...)})
	}
	r.next += int64(len(b))
	return nil
}

func (r *logReader) skip(n int64) error {
	if n <= 0 || n > math.MaxInt64/2-r.next {
		return fmt.Errorf("%w: gap of %d bytes", wire.ErrProtocol, n)
	}
	r.next += n
	return nil
}

func (r *logReader) log() Log { return Log{r.chunks, r.next} }
