package rfb

import (
	"bufio"
	"encoding/binary"
	"io"
)

// The messages of a screen.
const (
	update        = 0
	bell          = 2
	serverCutText = 3
)

// The encodings of a rectangle.
const (
	raw         = 0
	copyRect    = 1
	zrle        = 16
	desktopSize = -223
	cursor      = -239
)

// encodings tell how many bytes follow a rectangle's head. Others are never asked for.
var encodings = map[int32]func(*Relay, *rectangle) (int64, error){
	raw: (*Relay).rawLength, copyRect: (*Relay).copyLength, zrle: (*Relay).zrleLength,
	desktopSize: (*Relay).newSize, cursor: (*Relay).cursorLength,
}

// writeSize is how much is sent to a viewer at once.
const writeSize = 64 << 10

// rectangle is a part of a picture.
type rectangle struct {
	x, y, width, height int
	from                io.Reader
	to                  io.Writer
}

// FromScreen carries pictures until one side leaves. What else a screen says is left out.
func (r *Relay) FromScreen() error {
	from, to := bufio.NewReaderSize(r.Screen, writeSize), bufio.NewWriterSize(r.Viewer, writeSize)
	for {
		kind, err := from.ReadByte()
		if err != nil {
			return err
		}
		switch kind {
		case update:
			err = r.carryUpdate(from, to)
		case bell:
		case serverCutText:
			err = dropText(from)
		default:
			err = protocolError("a screen's message of the kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
}

// dropText reads what a page has copied; it does not leave the sandbox.
func dropText(from io.Reader) error {
	head, err := read(from, 7)
	if err != nil {
		return err
	}
	_, err = readText(from, head[3:], MaxCutText)
	return err
}

// carryUpdate carries a picture, rectangle by rectangle.
func (r *Relay) carryUpdate(from io.Reader, to *bufio.Writer) error {
	head, err := read(from, 3)
	if err != nil {
		return err
	}
	count := binary.BigEndian.Uint16(head[1:])
	if count == 1<<16-1 {
		return protocolError("a picture without an end")
	}
	_, _ = to.Write(append([]byte{update}, head...)) // Flush has the error
	left := 4*int64(r.width)*int64(r.height)*int64(r.pixel.Load()) + 1<<20
	for range count {
		n, err := r.carryRectangle(from, to, left)
		if err != nil {
			return err
		}
		left -= n
	}
	return to.Flush()
}

// carryRectangle carries a rectangle of at most so many bytes and returns how many it had.
func (r *Relay) carryRectangle(from io.Reader, to io.Writer, most int64) (int64, error) {
	head, err := read(from, 12)
	if err != nil {
		return 0, err
	}
	number := func(at int) int { return int(binary.BigEndian.Uint16(head[at:])) }
	rect := &rectangle{number(0), number(2), number(4), number(6), from, to}
	length, known := encodings[int32(binary.BigEndian.Uint32(head[8:]))]
	if !known {
		return 0, protocolError("a rectangle that was not asked for")
	}
	if _, err := to.Write(head); err != nil {
		return 0, err
	}
	n, err := length(r, rect)
	if err != nil {
		return 0, err
	}
	if n > most {
		return 0, protocolError("a picture that is too large")
	}
	_, err = io.CopyN(to, from, n)
	return n, err
}

// inside refuses a rectangle that is not on the screen.
func (r *Relay) inside(x, y, width, height int) error {
	if x+width > r.width || y+height > r.height {
		return protocolError("a rectangle outside of the screen")
	}
	return nil
}

func (r *Relay) rawLength(q *rectangle) (int64, error) {
	return int64(q.width) * int64(q.height) * int64(r.pixel.Load()), r.inside(q.x, q.y, q.width, q.height)
}

// copyLength carries where a rectangle is copied from.
func (r *Relay) copyLength(q *rectangle) (int64, error) {
	if err := r.inside(q.x, q.y, q.width, q.height); err != nil {
		return 0, err
	}
	at, err := read(q.from, 4)
	if err != nil {
		return 0, err
	}
	if err := r.inside(int(binary.BigEndian.Uint16(at)), int(binary.BigEndian.Uint16(at[2:])), q.width, q.height); err != nil {
		return 0, err
	}
	_, err = q.to.Write(at)
	return 0, err
}

// zrleLength carries the length that the rectangle says of itself.
func (r *Relay) zrleLength(q *rectangle) (int64, error) {
	if err := r.inside(q.x, q.y, q.width, q.height); err != nil {
		return 0, err
	}
	length, err := read(q.from, 4)
	if err != nil {
		return 0, err
	}
	_, err = q.to.Write(length)
	return int64(binary.BigEndian.Uint32(length)), err
}

func (r *Relay) newSize(q *rectangle) (int64, error) { return 0, r.resize(q.width, q.height) }

// cursorLength is that of the mouse's picture and of what of it is seen.
func (r *Relay) cursorLength(q *rectangle) (int64, error) {
	if q.width > maxCursor || q.height > maxCursor {
		return 0, protocolError("a mouse of %d × %d", q.width, q.height)
	}
	return int64(q.width)*int64(q.height)*int64(r.pixel.Load()) + int64((q.width+7)/8)*int64(q.height), nil
}
