// Package replay keeps the last bytes of a stream, so that it can go on over
// another wire when its own broke. Both halves use it: the guest for the output
// of processes, the host for their input. It has no frames and does no
// locking.
package replay

import "github.com/atoll-run/atoll/internal/wire"

const (
	// Keep is how much stays behind what was sent. A wire that breaks can have
	// swallowed at most its window and what the other side was just moving, so
	// nothing is lost.
	Keep = wire.Window + 2*wire.MaxFrame
	// Room is how far a writer may be ahead of the wire before it has to wait.
	Room = wire.MaxFrame
	// MaxTail bounds the tail that a capped ring keeps.
	MaxTail = Keep + Room
	// first is what a ring holds before it grows.
	first = 4 << 10
)

// Ring holds the bytes at offsets start to end of all that was written, of
// which those before sent were handed to a wire. The zero value is ready.
type Ring struct {
	// Loose makes a writer overwrite what was not sent rather than wait.
	Loose bool
	// Size is how many bytes a loose ring holds; 0 is as much as any other.
	Size int64

	buf              []byte // the byte at offset i is buf[i%len(buf)]
	start, sent, end int64
	closed           bool
	cap              *capacity
}

// capacity is what may be taken of a stream that is cut in the middle.
type capacity struct{ head, tail int64 }

// Cap cuts the stream in the middle if it is longer than head and tail: the
// head is for taking as it comes, the tail when the stream is closed. A tail
// over MaxTail counts as MaxTail.
func (r *Ring) Cap(head, tail int64) {
	r.cap = &capacity{max(head, 0), min(max(tail, 0), MaxTail)}
}

// End is the number of bytes written so far.
func (r *Ring) End() int64 { return r.end }

// Start is the offset of the oldest byte that is still there.
func (r *Ring) Start() int64 { return r.start }

// Closed reports whether Close was called.
func (r *Ring) Closed() bool { return r.closed }

// Close says that nothing more will be put.
func (r *Ring) Close() { r.closed = true }

// Put appends as much of b as there is room for.
func (r *Ring) Put(b []byte) int {
	floor := r.end // the first byte that must stay
	if !r.loose() {
		floor = max(r.start, r.sent-Keep)
	}
	n := min(int64(len(b)), floor+r.size()-r.end)
	if n <= 0 {
		return 0
	}
	r.grow(min(r.end+n-r.start, r.size()))
	r.start = max(r.start, r.end+n-int64(len(r.buf)))
	r.copyAt(r.end, b[:n])
	r.end += n
	return int(n)
}

// loose reports whether bytes may be overwritten that were not sent: the ring is
// Loose, or the head was sent and only the tail counts.
func (r *Ring) loose() bool { return r.Loose || r.cap != nil && r.sent >= r.cap.head }

func (r *Ring) size() int64 {
	if r.Loose && r.Size > 0 {
		return r.Size
	}
	return Keep + Room
}

// grow makes the buffer hold at least need bytes.
func (r *Ring) grow(need int64) {
	if need <= int64(len(r.buf)) {
		return
	}
	size := int64(max(first, len(r.buf)))
	for size < need {
		size *= 2
	}
	old := *r
	r.buf = make([]byte, min(size, r.size()))
	for at := old.start; at < old.end; {
		part := old.at(at)
		r.copyAt(at, part)
		at += int64(len(part))
	}
}

func (r *Ring) copyAt(offset int64, b []byte) {
	n := copy(r.buf[offset%int64(len(r.buf)):], b)
	copy(r.buf, b[n:])
}

// at returns bytes from offset on, as many as lie together.
func (r *Ring) at(offset int64) []byte {
	size := int64(len(r.buf))
	i := offset % size
	return r.buf[i:min(size, i+r.end-offset)]
}

// Pending reports whether there is something to take.
func (r *Ring) Pending() bool {
	_, until := r.span()
	return r.sent < until
}

// span is what may be taken now. What lies between sent and next is lost.
func (r *Ring) span() (next, until int64) {
	next = max(r.sent, r.start)
	switch {
	case r.cap == nil:
		return next, r.end
	case next < r.cap.head:
		return next, min(r.end, r.cap.head)
	case !r.closed: // the tail comes at the end
		return r.sent, r.sent
	}
	return max(next, r.end-r.cap.tail), r.end
}

// Take moves bytes that were not sent yet into b, and tells how many before
// them are lost.
func (r *Ring) Take(b []byte) (n int, gap int64) {
	next, until := r.span()
	gap = next - r.sent
	n = r.Read(b[:min(int64(len(b)), until-next)], next)
	r.sent = next + int64(n)
	return n, gap
}

// Read copies bytes from offset on, which must still be there, without regard
// to what was sent.
func (r *Ring) Read(b []byte, offset int64) int {
	n := 0
	for n < len(b) && offset < r.end {
		copied := copy(b[n:], r.at(offset))
		n += copied
		offset += int64(copied)
	}
	return n
}

// Rewind makes Take begin at offset again.
func (r *Ring) Rewind(offset int64) { r.sent = min(max(offset, 0), r.end) }
