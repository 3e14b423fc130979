package guest

import (
	"time"

	"github.com/atoll-run/atoll/internal/wire"
)

// follower is a host that reads a log without losing anything from when it came.
type follower struct {
	at   [2]int64 // offsets of what it takes next
	turn int      // the ring that it took from last
	left bool
}

// follow adds a follower from the given offsets on.
func (o *output) follow(stdout, stderr int64) *follower {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := &follower{}
	for i, at := range [2]int64{stdout, stderr} {
		f.at[i] = min(max(at, 0), o.rings[i].End())
	}
	if o.followers == nil {
		o.followers = map[*follower]struct{}{}
	}
	o.followers[f] = struct{}{}
	delete(o.followers, o.awaited) // it is here
	o.holdBack()
	return f
}

// awaitFollower keeps everything for a follower that has not come yet, for a time.
func (o *output) awaitFollower(most time.Duration) {
	o.awaited = o.follow(0, 0)
	time.AfterFunc(most, func() { o.unfollow(o.awaited) })
}

// unfollow removes a follower. It may be called twice.
func (o *output) unfollow(f *follower) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.followers, f)
	f.left = true
	o.holdBack()
	o.changed.Broadcast()
}

// holdBack makes the rings keep what the slowest follower has not taken. Without a
// follower they overwrite it. o.mu is held.
func (o *output) holdBack() {
	for i := range o.rings {
		ring := &o.rings[i]
		ring.Loose = len(o.followers) == 0
		taken := ring.End()
		for f := range o.followers {
			taken = min(taken, f.at[i])
		}
		ring.Rewind(taken)
	}
}

// awaitFor waits until there is output for a follower. It returns false at the end of
// output, and when the follower has left.
func (o *output) awaitFor(f *follower) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !f.left {
		switch {
		case f.at[0] < o.rings[0].End() || f.at[1] < o.rings[1].End():
			return true
		case o.rings[0].Closed() && o.rings[1].Closed():
			return false
		}
		o.changed.Wait()
	}
	return false
}

// takeFor copies output for a follower to b.
func (o *output) takeFor(f *follower, b []byte) (outputPart, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f.turn = 1 - f.turn // alternate, so that neither ring starves
	if f.at[f.turn] >= o.rings[f.turn].End() {
		f.turn = 1 - f.turn
	}
	part := o.peekLocked(f.turn, b, f.at[f.turn])
	f.at[f.turn] += part.gap + int64(part.n)
	o.holdBack()
	o.changed.Broadcast()
	return part, nil
}

// followLog streams a background process until its end, or until the host leaves. A
// host that is slow holds the process up.
func (c *call) followLog(a *wire.Attach) error {
	p, err := c.server.table.find(a.ID)
	if err != nil {
		return err
	}
	if !p.background {
		return wire.Fail(wire.CodeInvalid, "process "+a.ID+" does not run in the background")
	}
	f := p.out.follow(a.Stdout, a.Stderr)
	defer p.out.unfollow(f)
	gone := make(chan struct{})
	go func() { // nothing more comes from the host but its end
		defer close(gone)
		_, _ = c.reader.Frame()
		p.out.unfollow(f)
	}()
	for p.out.awaitFor(f) {
		if err := sendOutput(c.stream, func(b []byte) (outputPart, error) { return p.out.takeFor(f, b) }); err != nil {
			return nil
		}
	}
	select {
	case <-gone:
	case <-p.done:
		c.sendEnd(p)
	}
	return nil
}
