package serve

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"
)

// longestLook is the longest time between two looks at whether a gateway is used.
const longestLook = time.Second

// unused returns a channel that is closed when the gateway was not used for as long as
// its options say: no client was connected, no task and no run was under way, and no sandbox
// that a program made had a deadline to come; or its socket was removed.
func (g *Gateway) unused(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	if g.idle <= 0 {
		return done
	}
	ctx, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	g.onClose(func() { stop(); <-watched })
	go func() {
		defer close(watched)
		if g.awaitUnused(ctx) {
			close(done)
		}
	}()
	return done
}

// awaitUnused returns true when the gateway was not used for its time, or false when the
// context ends.
func (g *Gateway) awaitUnused(ctx context.Context) bool {
	look := time.NewTicker(min(longestLook, max(g.idle/4, time.Millisecond)))
	defer look.Stop()
	last, accepted := time.Now(), g.server.Accepted()
	for time.Since(last) < g.idle {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
		if now := g.server.Accepted(); g.isUsed(ctx) || now != accepted { // some are shorter than the time between two looks
			last, accepted = time.Now(), now
		}
		if g.isLost() {
			return true
		}
	}
	return true
}

// isLost reports whether the socket is gone, with the state directory perhaps: nobody can
// find the gateway any more.
func (g *Gateway) isLost() bool {
	_, err := os.Lstat(SocketPath(g.parts.Settings))
	return errors.Is(err, fs.ErrNotExist)
}

// isUsed reports whether anything is under way or still to be done.
func (g *Gateway) isUsed(ctx context.Context) bool {
	tasks := g.sessions.Stats()
	if g.server.Connections() > 0 || tasks.Running+tasks.Waiting+tasks.Unsaved > 0 || g.rest.Running() > 0 {
		return true
	}
	waits, err := g.made.Unfinished(ctx)
	return waits || err != nil
}
