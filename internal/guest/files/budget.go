package files

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// budget is what an operation on many files may still use.
type budget struct {
	entries int
	depth   int
	bytes   int64
	until   time.Time       // zero: no limit
	gone    <-chan struct{} // closed when the host has left; nil: never
}

// newBudget returns what the host asked for, within the limits of package wire.
func newBudget(scan *wire.FileScan) *budget {
	b := &budget{
		entries: min(max(scan.MaxEntries, 0), wire.MaxScanned),
		depth:   min(max(scan.MaxDepth, 0), wire.MaxDepth),
		bytes:   max(scan.MaxBytes, 0),
	}
	if scan.TimeMs > 0 {
		b.until = time.Now().Add(time.Duration(min(scan.TimeMs, wire.MaxFileTime)) * time.Millisecond)
	}
	return b
}

// errHostLeft ends an operation whose host has closed the stream.
var errHostLeft = errors.New("the host has left")

// checkTime fails if the time is over or the host has left.
func (b *budget) checkTime() error {
	select {
	case <-b.gone:
		return errHostLeft
	default:
	}
	if !b.until.IsZero() && time.Now().After(b.until) {
		return refuse(wire.CodeTimeout)
	}
	return nil
}

// spend counts one entry.
func (b *budget) spend() error {
	if b.entries--; b.entries < 0 {
		return refuse(wire.CodeTooLarge)
	}
	return b.checkTime()
}

// spendBytes counts n bytes of content.
func (b *budget) spendBytes(n int64) error {
	if b.bytes -= n; b.bytes < 0 {
		return refuse(wire.CodeTooLarge)
	}
	return nil
}

// limitHit returns the code of the limit that ended an operation, if err is one.
func limitHit(err error) (wire.Code, bool) {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || e.Code != wire.CodeTooLarge && e.Code != wire.CodeTimeout {
		return "", false
	}
	return e.Code, true
}

// maxReportedName is the longest path among those of refused files, which all have to
// fit one frame.
const maxReportedName = 512

// totals is the result of an operation on many files.
type totals struct{ wire.FileEnd }

// refused counts a file that was left out, and keeps its path if there is room.
func (t *totals) refused(path string, err error) {
	t.Refused++
	if len(t.Names) < wire.MaxRefused && len(path) <= maxReportedName {
		t.Names = append(t.Names, wire.FileRefused{Path: wire.Text(path), Code: wire.AsError(fileError(err)).Code})
	}
}

// batch gathers values into frames of about batchSize.
type batch[T any] struct {
	w    io.Writer
	kind wire.FrameType
	buf  []byte
}

// batchSize bounds a frame of several values.
const batchSize = 32 << 10

// add adds v, and first sends what was gathered if v does not fit.
func (b *batch[T]) add(v *T) error {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b.buf) > 0 && len(b.buf)+len(encoded) > batchSize {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.buf = append(append(b.buf, ','), encoded...)
	return nil
}

func (b *batch[T]) flush() error {
	if len(b.buf) == 0 {
		return nil
	}
	b.buf[0] = '['
	err := wire.WriteFrame(b.w, b.kind, append(b.buf, ']'))
	b.buf = b.buf[:0]
	return err
}
