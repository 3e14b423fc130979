package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// FrameType says what a frame holds.
type FrameType uint8

// The frames that a host sends.
const (
	FrameStdin    FrameType = 1 // bytes for the process
	FrameStdinEOF FrameType = 2 // empty: no more will come
)

// The frames that a guest sends.
const (
	FrameStarted FrameType = 16 // JSON Started
	FrameStdout  FrameType = 17 // bytes of the process
	FrameStderr  FrameType = 18
	FrameGap     FrameType = 19 // JSON Gap: bytes that were dropped here
	FrameExit    FrameType = 20 // JSON Exit, the last frame
	FrameResult  FrameType = 21 // JSON, the answer to a simple request
	FrameError   FrameType = 22 // JSON Error, the last frame
)

// HeaderSize is the length of a frame's header.
const HeaderSize = 5

// Frame is one frame as read. Payload is only valid until the next read.
type Frame struct {
	Type    FrameType
	Payload []byte
}

// Decode reads the payload as JSON into v.
func (f Frame) Decode(v any) error {
	if err := json.Unmarshal(f.Payload, v); err != nil {
		return fmt.Errorf("%w: frame %d: %w", ErrProtocol, f.Type, err)
	}
	return nil
}

// Reader reads frames and requests from a stream.
type Reader struct {
	buffered *bufio.Reader
	payload  []byte
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader) *Reader { return &Reader{buffered: bufio.NewReaderSize(r, 4<<10)} }

// Frame reads the next frame. io.EOF means that the stream ended between two.
func (r *Reader) Frame() (Frame, error) {
	var header [HeaderSize]byte
	if _, err := io.ReadFull(r.buffered, header[:]); err != nil {
		return Frame{}, err
	}
	payload, err := r.sized(binary.BigEndian.Uint32(header[1:]), MaxFrame)
	return Frame{FrameType(header[0]), payload}, err
}

// sized reads n bytes into the reused payload buffer, which grows only as
// bytes arrive: a length alone allocates no more than one step.
func (r *Reader) sized(n, limit uint32) ([]byte, error) {
	if n > limit {
		return nil, fmt.Errorf("%w: length %d is over the limit of %d", ErrProtocol, n, limit)
	}
	var err error
	r.payload, err = readSized(r.buffered, r.payload[:0], int(n))
	return r.payload, err
}

// growStep is what is allocated for a length whose bytes have not arrived.
const growStep = 4 << 10

func readSized(r io.Reader, buf []byte, n int) ([]byte, error) {
	for len(buf) < n {
		have := len(buf)
		step := min(n-have, max(growStep, have, cap(buf)-have))
		buf = append(buf, make([]byte, step)...)
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return buf[:0], noEOF(err)
		}
	}
	return buf, nil
}

// noEOF turns io.EOF in the middle of a message into io.ErrUnexpectedEOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// PutHeader writes the header for a payload of n bytes to the front of buf.
// The caller puts the payload behind it and sends both in one write.
func PutHeader(buf []byte, t FrameType, n int) {
	buf[0] = byte(t)
	binary.BigEndian.PutUint32(buf[1:HeaderSize], uint32(n))
}

// WriteFrame writes one frame in one write.
func WriteFrame(w io.Writer, t FrameType, payload []byte) error {
	if len(payload) > MaxFrame {
		return fmt.Errorf("frame %d of %d bytes is over the limit of %d", t, len(payload), MaxFrame)
	}
	buf := make([]byte, HeaderSize+len(payload))
	PutHeader(buf, t, len(payload))
	copy(buf[HeaderSize:], payload)
	_, err := w.Write(buf)
	return err
}

// WriteJSON writes one frame with v as its payload.
func WriteJSON(w io.Writer, t FrameType, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return WriteFrame(w, t, payload)
}
