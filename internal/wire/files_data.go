package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// Data reads the bytes that Data frames carry, as if they had no frames. It can
// continue after a deadline in the middle of a frame.
type Data struct {
	frames *Reader
	header [HeaderSize]byte
	have   int // bytes of header
	left   int // bytes of the present frame
	ended  bool
}

// Data returns a reader of the Data frames that come next.
func (r *Reader) Data() *Data { return &Data{frames: r} }

// Ended reports whether a DataEnd frame has come.
func (d *Data) Ended() bool { return d.ended }

// Interrupt is a frame that is no Data where Data was expected. Its payload is
// valid until the next read.
type Interrupt struct{ Frame }

func (i *Interrupt) Error() string { return fmt.Sprintf("frame %d among data", i.Type) }

// Read implements io.Reader. A DataEnd frame is io.EOF, the end of the stream
// io.ErrUnexpectedEOF, any other frame an *Interrupt.
func (d *Data) Read(p []byte) (int, error) {
	if err := d.Wait(); err != nil {
		return 0, err
	}
	n, err := d.frames.buffered.Read(p[:min(len(p), d.left)])
	d.left -= n
	return n, noEOF(err)
}

// nextHeader reads a frame's header.
func (d *Data) nextHeader() error {
	for d.have < HeaderSize {
		n, err := d.frames.buffered.Read(d.header[d.have:])
		d.have += n
		if err != nil {
			return noEOF(err)
		}
	}
	d.have = 0
	kind, length := FrameType(d.header[0]), binary.BigEndian.Uint32(d.header[1:])
	switch {
	case kind == FrameDataEnd && length == 0:
		d.ended = true
		return io.EOF
	case kind == FrameData && length > 0 && length <= MaxData:
		d.left = int(length)
		return nil
	case kind == FrameData || kind == FrameDataEnd:
		return fmt.Errorf("%w: data frame of %d bytes", ErrProtocol, length)
	}
	payload, err := d.frames.sized(length, MaxFrame)
	if err != nil {
		return err
	}
	return &Interrupt{Frame{kind, payload}}
}

// dataBuffer holds one Data frame.
type dataBuffer [HeaderSize + DataFrame]byte

// dataBuffers are taken only while bytes move.
var dataBuffers = sync.Pool{New: func() any { return new(dataBuffer) }}

// streamFrame is how many bytes a Data frame carries on a multiplexed wire,
// where other streams wait for its end.
const streamFrame = 64<<10 - HeaderSize

// DataWriter puts bytes into Data frames, each sent in one write. Close gives
// its buffer back.
type DataWriter struct {
	w    io.Writer
	buf  *dataBuffer
	size int // of a frame's payload
}

// NewDataWriter returns a DataWriter to a stream.
func NewDataWriter(w io.Writer) *DataWriter {
	return &DataWriter{w, dataBuffers.Get().(*dataBuffer), streamFrame}
}

// Large makes frames as large as they may be, for a connection that carries
// nothing else.
func (d *DataWriter) Large() { d.size = DataFrame }

// Write implements io.Writer.
func (d *DataWriter) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n := min(len(p)-done, d.size)
		if err := d.sendCopy(p[done : done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// gatherer is a writer that sends several pieces in one call.
type gatherer interface {
	WriteBuffers(buffers *net.Buffers) (int64, error)
}

// sendCopy sends bytes that are not in the buffer; without copying them, if the
// writer sends several pieces in one call.
func (d *DataWriter) sendCopy(p []byte) error {
	g, ok := d.w.(gatherer)
	if !ok || d.size != DataFrame {
		return d.send(copy(d.buf[HeaderSize:], p))
	}
	PutHeader(d.buf[:], FrameData, len(p))
	_, err := g.WriteBuffers(&net.Buffers{d.buf[:HeaderSize], p})
	return err
}

// Next fills the next frame with read, and sends it. It returns the error of read
// after what was read has been sent.
func (d *DataWriter) Next(read func([]byte) (int, error)) (int, error) {
	n, err := read(d.buf[HeaderSize : HeaderSize+d.size])
	if n > 0 {
		if sendErr := d.send(n); sendErr != nil {
			return n, sendErr
		}
	}
	return n, err
}

func (d *DataWriter) send(n int) error {
	PutHeader(d.buf[:], FrameData, n)
	_, err := d.w.Write(d.buf[:HeaderSize+n])
	return err
}

// End sends that no more data will come.
func (d *DataWriter) End() error {
	var end [HeaderSize]byte
	PutHeader(end[:], FrameDataEnd, 0)
	_, err := d.w.Write(end[:])
	return err
}

// Close gives the buffer back. The writer must not be used any more.
func (d *DataWriter) Close() {
	if d.buf != nil {
		dataBuffers.Put(d.buf)
		d.buf = nil
	}
}

// Wait returns when there is data to read, or with what Read would return
// instead. It needs no buffer.
func (d *Data) Wait() error {
	if d.ended {
		return io.EOF
	}
	for d.left == 0 {
		if err := d.nextHeader(); err != nil {
			return err
		}
	}
	return nil
}
