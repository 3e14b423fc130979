package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy"
)

// wireConn is a connection over a wire that breaks when told.
type wireConn struct {
	net.Conn
	lost atomic.Bool
}

func (c *wireConn) Lost() bool { return c.lost.Load() }

func (c *wireConn) drop() {
	c.lost.Store(true)
	_ = c.Conn.Close()
}

func (c *wireConn) Read(b []byte) (int, error)  { n, err := c.Conn.Read(b); return n, c.reason(err) }
func (c *wireConn) Write(b []byte) (int, error) { n, err := c.Conn.Write(b); return n, c.reason(err) }

func (c *wireConn) reason(err error) error {
	if err != nil && c.lost.Load() {
		return errBrokenWire
	}
	return err
}

// A program that asks again at once, before the proxy has noticed that the wire
// broke in the middle of a silent stream, is matched all the same.
func TestARetryIsQuickerThanTheLossOfTheWire(t *testing.T) {
	release := make(chan struct{})
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"content\":\"begun \"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-release
		fmt.Fprint(w, "data: {\"id\":\"1\",\"choices\":[{\"delta\":{\"content\":\"done\"}}]}\n\n",
			"data: {\"id\":\"1\",\"choices\":[],\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n")
	})
	p := newProxy(t, m.URL, func(o *proxy.Options) {
		o.WireLost = func(err error) bool { return errors.Is(err, errBrokenWire) }
		o.Tick = 2 * time.Second // long after the second request is there
	})
	caller := terms()
	ask := func() (*wireConn, *bufio.Reader) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = here.Close() })
		c := &wireConn{Conn: there}
		p.Handle(c, func(net.Conn) proxy.Admit { return admitting(t, caller) })
		go func() { _, _ = io.WriteString(here, request("POST", chatPath, helloStream)) }()
		return c, bufio.NewReader(here)
	}
	first, in := ask()
	for line := ""; line != "\n"; { // up to the end of the first event
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	first.drop()
	_, in = ask()
	until(t, "the second request is under way", func() bool { return p.Busy() == 2 })
	close(release)
	readAnswer(in, "POST").want(t, 200, "begun ", "done", "data: [DONE]")
	if n := len(m.asked()); n != 1 {
		t.Errorf("the upstream was asked %d times", n)
	}
	if c := p.spent("run-1"); c.Calls != 1 || c.Tokens.Output != 7 || c.Estimated != 0 {
		t.Errorf("charged %+v", c)
	}
}
