package guest

import "github.com/atoll-run/atoll/internal/wire"

const (
	// keep is how much of an output stays behind what was sent. A wire that
	// breaks can have swallowed at most its window, so that a host that attaches
	// again misses nothing.
	keep = wire.Window
	// room is how far a process may be ahead of the wire before it has to wait.
	room = wire.MaxFrame
	// ringFirst is what a ring holds before it grows.
	ringFirst = 4 << 10
)

// ring holds one output of a process: the bytes at offsets start to end of all
// that it wrote, of which those before sent were handed to a wire.
type ring struct {
	buf              []byte // the byte at offset i is buf[i%len(buf)]
	start, sent, end int64
	closed           bool // nothing will be added
	loose            bool // overwrite what was not sent rather than wait
}

// put appends as much of b as there is room for.
func (r *ring) put(b []byte) int {
	floor := r.end // the first byte that must stay
	if !r.loose {
		floor = max(r.start, r.sent-keep)
	}
	n := min(int64(len(b)), floor+keep+room-r.end)
	if n <= 0 {
		return 0
	}
	r.grow(min(r.end+n-floor, keep+room))
	r.start = max(r.start, r.end+n-int64(len(r.buf)))
	r.copyAt(r.end, b[:n])
	r.end += n
	return int(n)
}

// grow makes the buffer hold at least need bytes.
func (r *ring) grow(need int64) {
	if need <= int64(len(r.buf)) {
		return
	}
	size := int64(max(ringFirst, len(r.buf)))
	for size < need {
		size *= 2
	}
	old := *r
	r.buf = make([]byte, min(size, keep+room))
	for at := old.start; at < old.end; {
		part := old.at(at)
		r.copyAt(at, part)
		at += int64(len(part))
	}
}

func (r *ring) copyAt(offset int64, b []byte) {
	i := int(offset % int64(len(r.buf)))
	n := copy(r.buf[i:], b)
	copy(r.buf, b[n:])
}

// at returns bytes from offset on, as many as lie together.
func (r *ring) at(offset int64) []byte {
	if offset >= r.end {
		return nil
	}
	size := int64(len(r.buf))
	i := offset % size
	return r.buf[i:min(size, i+r.end-offset)]
}

// take moves bytes that were not sent yet into b, and tells how many before
// them are lost.
func (r *ring) take(b []byte) (n int, gap int64) {
	gap = max(0, r.start-r.sent)
	r.sent += gap
	for n < len(b) && r.sent < r.end {
		copied := copy(b[n:], r.at(r.sent))
		n += copied
		r.sent += int64(copied)
	}
	return n, gap
}

// rewind makes take begin at offset again.
func (r *ring) rewind(offset int64) { r.sent = min(max(offset, 0), r.end) }

// pending reports whether there is something to take.
func (r *ring) pending() bool { return r.sent < r.end }
