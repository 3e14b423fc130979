package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Data reads the bytes that Data frames carry, as if they had no frames. It can
// go on after a deadline has passed in the middle of a frame.
type Data struct {
	frames *Reader
	header [HeaderSize]byte
	have   int // bytes of header
	left   int // bytes of the present frame
	ended  bool
}

// Data returns a reader of the Data frames that come next.
func (r *Reader) Data() *Data { return &Data{frames: r} }

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

// next reads a frame's header.
func (d *Data) next() error {
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
	case kind == FrameData && length > 0 && length <= DataFrame:
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

// dataBuffers are only held while bytes move.
var dataBuffers = sync.Pool{New: func() any { return new(dataBuffer) }}

// DataWriter puts bytes into Data frames, each sent in one write. Close gives
// its buffer back.
type DataWriter struct {
	w   io.Writer
	buf *dataBuffer
}

// NewDataWriter returns a DataWriter to w.
func NewDataWriter(w io.Writer) *DataWriter {
	return &DataWriter{w, dataBuffers.Get().(*dataBuffer)}
}

// Write implements io.Writer.
func (d *DataWriter) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n := copy(d.buf[HeaderSize:], p[done:])
		if err := d.send(n); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// Next has read fill the next frame, and sends what it got. It returns read's
// error first.
func (d *DataWriter) Next(read func([]byte) (int, error)) (int, error) {
	n, err := read(d.buf[HeaderSize:])
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

// End says that no more data will come.
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
		if err := d.next(); err != nil {
			return err
		}
	}
	return nil
}
