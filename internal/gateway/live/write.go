package live

import (
	"context"
	"maps"
	"time"

	"github.com/coder/websocket"

	"github.com/atoll-run/atoll/api"
)

// write sends what there is to send until the connection ends. A client that does not
// take a message in time is dropped.
func (c *conn) write(ctx context.Context) error {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	look := time.NewTicker(runEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ping.C:
			if err := c.ping(ctx); err != nil {
				return err
			}
			continue
		case <-look.C:
			c.lookAgain()
		case <-c.wake:
		}
		if err := c.sendAll(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, sendEvery); err != nil {
			return err
		}
	}
}

// sendAll sends one message of each stream after the other, until none has more.
func (c *conn) sendAll(ctx context.Context) error {
	for more := true; more; {
		more = false
		for _, text := range c.takeAnswers() {
			if err := c.send(ctx, text); err != nil {
				return err
			}
		}
		for topic, s := range c.snapshot() {
			text, err := s.next(ctx)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				c.fail(topic, s, err)
			case text == nil:
				continue
			default:
				err = c.send(ctx, text)
			}
			if more = true; text != nil && err != nil {
				return err
			}
		}
	}
	return nil
}

// fail ends a stream and tells the client why.
func (c *conn) fail(topic string, s stream, err error) {
	c.mu.Lock()
	if c.streams[topic] == s {
		delete(c.streams, topic)
		s.close()
	}
	c.mu.Unlock()
	c.answer(&api.LiveMessage{Type: api.LiveProblem, Topic: topic, Problem: c.handler.Source.Problem(c.caller, err)})
}

func (c *conn) takeAnswers() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.answers
	c.answers = nil
	return all
}

func (c *conn) snapshot() map[string]stream {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.streams)
}

// lookAgain has streams look that are not told of every change.
func (c *conn) lookAgain() {
	for _, s := range c.snapshot() {
		if r, ok := s.(*runStream); ok {
			r.changed.Store(true)
		}
	}
}

func (c *conn) send(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, text)
}

func (c *conn) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return c.ws.Ping(ctx)
}

// sleep waits, or returns why the context ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
