// Package buffer lends the buffers of the guest between pipes, rings, files and
// the wire. One is held only while bytes move, so that idle processes and
// connections hold none.
package buffer

import (
	"sync"

	"github.com/atoll-run/atoll/internal/wire"
)

// Frame has room for one frame with its header.
type Frame [wire.HeaderSize + wire.MaxFrame]byte

var frames = sync.Pool{New: func() any { return new(Frame) }}

// Get returns a buffer. Its content is undefined.
func Get() *Frame { return frames.Get().(*Frame) }

// Put gives a buffer back.
func Put(f *Frame) { frames.Put(f) }
