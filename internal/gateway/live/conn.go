package live

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// The reasons to end a connection.
var (
	errNoRequest = errors.New("a message that is no LiveRequest")
	errTooFast   = errors.New("too many messages")
)

// conn is one connection. What it has to send is not kept for it: each stream knows how
// far the client is, and what comes next is looked up when it can be sent.
type conn struct {
	handler *Handler
	ws      *websocket.Conn
	caller  *access.Caller
	wake    chan struct{}

	mu      sync.Mutex
	streams map[string]stream
	answers [][]byte // messages that no stream sends
	left    float64  // messages that the client may send now
	counted time.Time
}

func newConn(h *Handler, ws *websocket.Conn, caller *access.Caller) *conn {
	c := &conn{handler: h, ws: ws, caller: caller, wake: make(chan struct{}, 1), streams: map[string]stream{}, left: burst, counted: time.Now()}
	c.answer(&api.LiveMessage{Type: api.LiveReady})
	return c
}

// ring says that there may be something to send.
func (c *conn) ring() {
	select {
	case c.wake <- struct{}{}:
	default: // it is said already
	}
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, s := range c.streams {
		delete(c.streams, name)
		s.close()
	}
}

// answer has a message sent that belongs to no stream.
func (c *conn) answer(m *api.LiveMessage) {
	text, err := json.Marshal(m)
	if err != nil {
		return // it is made of text alone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers = append(c.answers, text)
	c.ring()
}

// read does what the client asks for until it leaves.
func (c *conn) read(ctx context.Context) error {
	for {
		kind, data, err := c.ws.Read(ctx)
		if err != nil {
			return err
		}
		var q api.LiveRequest
		if kind != websocket.MessageText || json.Unmarshal(data, &q) != nil {
			return c.refuse(websocket.StatusUnsupportedData, errNoRequest)
		}
		if !c.admit() {
			return c.refuse(websocket.StatusPolicyViolation, errTooFast)
		}
		if err := c.do(&q); err != nil {
			return c.refuse(websocket.StatusUnsupportedData, err)
		}
	}
}

func (c *conn) refuse(status websocket.StatusCode, err error) error {
	_ = c.ws.Close(status, err.Error())
	return err
}

// admit counts a message of the client.
func (c *conn) admit() bool {
	now := time.Now()
	c.left = min(burst, c.left+rate*now.Sub(c.counted).Seconds()) - 1
	c.counted = now
	return c.left >= 0
}

func (c *conn) do(q *api.LiveRequest) error {
	switch q.Type {
	case api.LiveSubscribe:
		if p := c.subscribe(q.Topic, q.Since); p != nil {
			c.answer(&api.LiveMessage{Type: api.LiveProblem, Topic: q.Topic, Problem: p})
		}
	case api.LiveUnsubscribe:
		c.unsubscribe(q.Topic)
	case api.LiveLogIn: // the caller is known by other means already
	default:
		return errNoRequest
	}
	return nil
}

func (c *conn) subscribe(topic string, since int64) *api.Problem {
	c.unsubscribe(topic)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.streams) >= MaxTopics {
		return problem(http.StatusTooManyRequests, "too_many_topics", "a connection has at most 64 topics: unsubscribe from others first")
	}
	s, p := c.open(topic, max(since, 0))
	if p == nil {
		c.streams[topic] = s
		c.ring()
	}
	return p
}

func (c *conn) unsubscribe(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[topic]; s != nil {
		delete(c.streams, topic)
		s.close()
	}
}

// problem is a refusal in the words of the HTTP interface.
func problem(status int, code, detail string) *api.Problem {
	return &api.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}
