package attach

import (
	"context"
	"errors"
	"time"

	"github.com/coder/websocket"
)

const (
	// SendTime is how long either side may take for one message; then it is cut.
	SendTime = 10 * time.Second
	// pingEvery is how often it is found out whether the program is still there.
	pingEvery = 30 * time.Second
	// maxReason bounds the text of a WebSocket's end.
	maxReason = 120
)

// Connection is a program's connection to a browser.
type Connection struct {
	Program, Browser *websocket.Conn
	Filter           *Filter
	// SendTime is how long either side may take for one message; 0 is SendTime.
	SendTime time.Duration
}

// Serve carries messages until one side leaves, breaks a bound or the context ends, and
// returns why. Both connections are closed then.
func (c *Connection) Serve(ctx context.Context) error {
	if c.SendTime == 0 {
		c.SendTime = SendTime
	}
	c.Program.SetReadLimit(MaxMessage)
	c.Browser.SetReadLimit(MaxMessage)
	defer c.Filter.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{}, 3)
	for _, part := range []func(context.Context) error{c.fromProgram, c.fromBrowser, c.ping} {
		go func() {
			cancel(part(ctx))
			ended <- struct{}{}
		}()
	}
	<-ctx.Done()
	why := context.Cause(ctx)
	c.close(why)
	for range 3 {
		<-ended
	}
	return why
}

// close tells the program why its connection ends.
func (c *Connection) close(why error) {
	_ = c.Browser.CloseNow()
	status, reason := websocket.StatusPolicyViolation, why.Error()
	if errors.Is(why, context.Canceled) || websocket.CloseStatus(why) != -1 {
		status, reason = websocket.StatusGoingAway, "the connection was ended"
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	_ = c.Program.Close(status, reason)
}

func (c *Connection) fromProgram(ctx context.Context) error {
	return c.carry(ctx, c.Program, c.Filter.FromProgram)
}

func (c *Connection) fromBrowser(ctx context.Context) error {
	return c.carry(ctx, c.Browser, c.Filter.FromBrowser)
}

// carry reads messages of one side and sends what follows from each before the next.
func (c *Connection) carry(ctx context.Context, from *websocket.Conn, decide func([]byte) (*Output, error)) error {
	for {
		kind, data, err := from.Read(ctx)
		if err != nil {
			return err
		}
		if kind != websocket.MessageText {
			return errors.New("a message that is no text")
		}
		out, err := decide(data)
		if err != nil {
			return err
		}
		if err := c.send(ctx, out); err != nil {
			return err
		}
	}
}

// send sends what follows from a message.
func (c *Connection) send(ctx context.Context, out *Output) error {
	ctx, cancel := context.WithTimeout(ctx, c.SendTime)
	defer cancel()
	for _, text := range out.ToBrowser {
		if err := c.Browser.Write(ctx, websocket.MessageText, text); err != nil {
			return err
		}
	}
	if out.ToProgram == nil {
		return nil
	}
	return c.Program.Write(ctx, websocket.MessageText, out.ToProgram)
}

// ping finds out whether the program is still there.
func (c *Connection) ping(ctx context.Context) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, c.SendTime)
		err := c.Program.Ping(within)
		cancel()
		if err != nil {
			return err
		}
	}
}
