package machine

import (
	"fmt"
	"io"
	"math"

	"github.com/atoll-run/atoll/internal/wire"
)

// outputSink passes one output of a command on.
type outputSink struct {
	w      io.Writer
	limit  int64 // on what is passed on
	passed int64
	offset int64 // of the next byte in all that the command wrote
	head   int64 // passed before the first gap
	gaps   bool
}

func newOutputSink(w io.Writer, limit int64) *outputSink {
	if w == nil {
		w = io.Discard
	}
	if limit == 0 {
		limit = math.MaxInt64
	}
	return &outputSink{w: w, limit: limit}
}

// write passes b on. More than the limit is a protocol violation.
func (o *outputSink) write(b []byte) error {
	n := int64(len(b))
	if n > o.limit-o.passed {
		return fmt.Errorf("%w: output over the limit of %d bytes", wire.ErrProtocol, o.limit)
	}
	o.passed += n
	o.offset += n
	if !o.gaps {
		o.head += n
	}
	if _, err := o.w.Write(b); err != nil {
		return fmt.Errorf("output of the command: %w", err)
	}
	return nil
}

// gap notes bytes that the guest dropped.
func (o *outputSink) gap(n int64) error {
	if n <= 0 || n > math.MaxInt64/2-o.offset {
		return fmt.Errorf("%w: gap of %d bytes", wire.ErrProtocol, n)
	}
	o.offset += n
	o.gaps = true
	return nil
}

// summary returns how much the command wrote, total by the guest's report, and
// how much of that was passed on.
func (o *outputSink) summary(total int64) Output {
	total = max(total, o.offset)
	return Output{Total: total, Head: o.head, Lost: total - o.passed}
}
