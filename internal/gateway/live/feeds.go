package live

import (
	"context"
	"time"
)

// Changed says that a topic of rows has changed.
func (h *Handler) Changed(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, f := range h.feeds {
		if name.topic == topic || name.topic == TopicCounts && topic == TopicSandboxes {
			f.ring()
		}
	}
}

// join adds a connection to a feed, which begins with its first one. It returns nil if
// there are too many feeds.
func (h *Handler) join(name feedName, c *conn) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[name]
	if f == nil {
		if len(h.feeds) >= maxFeeds || h.ctx.Err() != nil {
			return nil
		}
		f = newFeed(name, h.Source)
		var ctx context.Context
		ctx, f.stop = context.WithCancel(h.ctx)
		h.feeds[name] = f
		h.work.Go(func() { f.follow(ctx) })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[c] = true
	return f
}

// leave removes a connection from a feed. One without connections is kept for a while:
// a page that is loaded again goes on where it was.
func (h *Handler) leave(f *feed, c *conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
	if len(f.conns) == 0 {
		time.AfterFunc(linger, func() { h.drop(f) })
	}
}

// drop ends a feed without connections.
func (h *Handler) drop(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.conns) == 0 && h.feeds[f.name] == f {
		f.stop()
		delete(h.feeds, f.name)
	}
}
