package ws

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/publicerr"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/logid"
)

// conn is a client's connection. Its fields do not change after the handshake.
type conn struct {
	*protocol.Conn
	server *Server
	id     string
	nonce  string
	from   netip.Addr
	direct bool // from this machine, without a proxy
	socket *access.Caller

	out     outbox
	ctx     context.Context
	version int
	method  string // kind of credential: token or password
	caller  *access.Caller
	scopes  scopes
	client  clientInfo
	tools   bool // receives tool events
	since   time.Time

	ping  *time.Timer
	calls atomic.Int64 // running in the background
}

// view returns what the client's token may see.
func (c *conn) view() session.View {
	return session.View{Account: c.caller.Account, All: c.caller.Account == ""}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, greet func()) {
	c := &conn{server: s, id: newID(), nonce: newID(), from: access.Remote(r), socket: access.FromContext(r.Context())}
	c.direct = isDirect(r, c.from) || c.socket != nil
	link, err := protocol.Accept(w, r, protocol.AcceptOptions{MaxPayload: s.Limits.EarlyFrame, Origins: s.Origins, Buffers: &s.buffers})
	if err != nil {
		return
	}
	defer link.Drop()
	c.Conn = link
	c.out.conn, c.out.limits, c.out.meters, c.out.all = link, &s.Limits, s.meters, &s.hub.buffered
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	c.ctx = logid.With(ctx, "connection", c.id)
	if !c.handshake() {
		return
	}
	greet()
	c.serveRequests()
}

// isDirect reports whether a request comes from this machine without a proxy:
// forwarding headers mean that the client is elsewhere.
func isDirect(r *http.Request, from netip.Addr) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "X-Forwarded-Host"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	return from.IsLoopback()
}

// serveRequests answers requests until the connection ends.
func (c *conn) serveRequests() {
	defer c.server.hub.remove(c)
	defer c.logEnd(time.Now())
	c.Limit(c.server.Limits.Frame)
	c.pingLoop()
	defer c.ping.Stop()
	for {
		if err := c.readRequest(); err != nil {
			return
		}
	}
}

// logEnd logs the end of a connection whose client had said hello.
func (c *conn) logEnd(begun time.Time) {
	c.server.Logger.InfoContext(c.ctx, "connection over", "token", c.caller.Token, "account", c.caller.Account, "path", Path, "took", time.Since(begun))
}

// pingLoop pings an idle client, to detect a connection whose other end has
// vanished.
func (c *conn) pingLoop() {
	every := c.server.Limits.Ping
	c.ping = time.AfterFunc(never, func() {
		if !c.out.busy() { // a write in progress has its own timeout
			ctx, cancel := context.WithTimeout(c.ctx, every)
			defer cancel()
			if c.Ping(ctx) != nil {
				if errors.Is(ctx.Err(), context.DeadlineExceeded) { // otherwise the connection ended by itself
					c.server.meters.dropped.With("silent").Inc()
				}
				c.Drop()
				return
			}
		}
		c.ping.Reset(every)
	})
	c.ping.Reset(every) // after the answer, so that pings do not overlap
}

const never = 24 * time.Hour

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// respond sends a reply. Paths of the host are removed for tokens that are bound to
// an account.
func (c *conn) respond(id string, payload any, problem *protocol.Error) {
	if problem != nil && (c.caller == nil || c.caller.Account != "") {
		problem.Message = publicerr.Text(problem.Message)
	}
	c.out.send(response(id, payload, problem))
}

func response(id string, payload any, problem *protocol.Error) []byte {
	r := protocol.Response{Type: protocol.TypeResponse, ID: id, OK: problem == nil, Error: problem}
	if problem == nil {
		body, err := json.Marshal(payload)
		if err != nil {
			return response(id, nil, unavailable("response serialization failed"))
		}
		r.Payload = body
	}
	data, err := json.Marshal(r)
	if err != nil { // only strings are left
		return []byte(`{"type":"res","id":"invalid","ok":false}`)
	}
	return data
}
