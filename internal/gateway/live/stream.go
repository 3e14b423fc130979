package live

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
)

// stream is a topic of one connection.
type stream interface {
	// next returns the next message, or nil if there is none now.
	next(ctx context.Context) ([]byte, error)
	close()
}

// refresh says how often topics of rows are read although nothing is known to have
// changed: other processes change them too.
var refresh = map[string]time.Duration{
	TopicRuns: 15 * time.Second, TopicSandboxes: 5 * time.Second, TopicUsage: time.Second, TopicApprovals: 5 * time.Second,
	TopicBrowsers: 5 * time.Second, TopicSessions: 15 * time.Second, TopicCost: 15 * time.Second, TopicHealth: 5 * time.Second, TopicCounts: 5 * time.Second,
}

// The topics of rows.
const (
	TopicRuns      = "runs"
	TopicSandboxes = "sandboxes"
	TopicUsage     = "usage" // of running sandboxes
	TopicApprovals = "approvals"
	TopicBrowsers  = "browsers"
	TopicSessions  = "sessions"
	TopicCost      = "cost"
	TopicHealth    = "health"
	TopicCounts    = "counts" // of sandboxes
)

// The beginnings of topics with events.
const (
	ofRun     = "run:"
	ofSession = "session:"
)

// open returns the stream of a topic. The caller holds the lock.
func (c *conn) open(topic string, since int64) (stream, *api.Problem) {
	if len(topic) > maxName {
		return nil, unknown()
	}
	if id, ok := strings.CutPrefix(topic, ofRun); ok && id != "" {
		return newRunStream(c, topic, id, since), nil
	}
	key, isSession := strings.CutPrefix(topic, ofSession)
	if _, isRows := refresh[topic]; !isRows && (!isSession || key == "") {
		return nil, unknown()
	}
	f := c.handler.join(feedName{c.caller.Account, topic}, c)
	if f == nil {
		return nil, problem(http.StatusServiceUnavailable, "busy", "too many topics are followed: try again later")
	}
	return &feedStream{conn: c, feed: f, seq: since}, nil
}

func unknown() *api.Problem {
	return problem(http.StatusNotFound, "no_such_topic", "there is no such topic")
}

// feedStream is how far a connection is with a feed.
type feedStream struct {
	conn *conn
	feed *feed
	seq  int64
}

func (s *feedStream) next(context.Context) ([]byte, error) {
	text, seq, err := s.feed.after(s.seq)
	s.seq = seq
	return text, err
}

func (s *feedStream) close() { s.conn.handler.leave(s.feed, s.conn) }
