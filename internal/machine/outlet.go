package machine

import (
	"fmt"
	"io"
	"math"

	"github.com/atoll-run/atoll/internal/wire"
)

// outlet passes one output of a command on.
type outlet struct {
	w      io.Writer
	limit  int64 // on what is passed on
	passed int64
	offset int64 // of the next byte in all that the command wrote
	head   int64 // passed before the first gap
	gaps   bool
}

func newOutlet(w io.Writer, limit int64) *outlet {
	if w == nil {
		w = io.Discard
	}
	if limit == 0 {
		limit = math.MaxInt64
	}
	return &outlet{w: w, limit: limit}
}

// write passes b on. A guest that sends more than it was asked for is hostile.
func (o *outlet) write(b []byte) error {
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

// skip notes bytes that the guest dropped.
func (o *outlet) skip(n int64) error {
	if n <= 0 || n > math.MaxInt64/2-o.offset {
		return fmt.Errorf("%w: gap of %d bytes", wire.ErrProtocol, n)
	}
	o.offset += n
	o.gaps = true
	return nil
}

// account says what became of the bytes that the command wrote, total by the
// guest's word.
func (o *outlet) account(total int64) Output {
	total = max(total, o.offset)
	return Output{Total: total, Head: o.head, Lost: total - o.passed}
}
