package proxy

import (
	"errors"
	"io"
	"net"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/h1"
	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
	"github.com/atoll-run/atoll/internal/wire/socket"
)

// pastDeadline is a deadline in the past, which ends a read at once.
var pastDeadline = time.Unix(1, 0)

// conn serves one connection, one request after the other.
type conn struct {
	server *Server
	net    net.Conn
	reader *h1.Reader
	admit  Admit
	q      h1.Request
	wrote  time.Time // when the deadline for writing was last set
}

func newConn(s *Server, n net.Conn, admit Admit) *conn {
	n = socket.Wrap(n)
	return &conn{server: s, net: n, reader: h1.NewReader(n), admit: admit}
}

func (c *conn) release() { c.reader.Release() }

// serve serves requests until the caller closes the connection, sends one that is
// malformed, or sends none for too long.
func (c *conn) serve() {
	o := &c.server.options
	for c.server.ctx.Err() == nil {
		err := c.reader.ReadRequest(&c.q, o.headTimeouts())
		if err != nil {
			c.refuseHead(err)
			return
		}
		w := getWorker()
		again := c.handle(w) && !c.q.Close
		w.put()
		if !again {
			return
		}
	}
}

// refuseHead answers a head that was not accepted, and ends the connection.
func (c *conn) refuseHead(err error) {
	p, ok := errors.AsType[*h1.ProtocolError](err)
	if !ok {
		return
	}
	problem := &dialect.Problem{Status: p.Status, Code: "bad_request", Message: p.Reason}
	c.record(&audit.ModelRequest{Status: p.Status, Denied: p.Reason})
	c.q = h1.Request{Close: true}
	w := getWorker()
	defer w.put()
	_ = c.answerProblem(w, dialect.OpenAI, problem)
	h1.Linger(c.net)
}

// record writes the audit record of a request whose head was not accepted.
func (c *conn) record(r *audit.ModelRequest) {
	r.Time = time.Now()
	if caller, _ := c.admit(&c.q); caller != nil {
		r.Subject = caller.Subject
	}
	if err := c.server.options.Audit.Append(r); err != nil {
		c.server.options.Logger.Error("audit", "error", err)
	}
}

// handle serves one request and reports whether the connection can go on.
func (c *conn) handle(w *worker) bool {
	r, near := findRoute(c.q.Method, c.q.Target)
	if r != nil && r.kind == routeHealth {
		return c.discardBody() && c.answer(w, 200, "application/json", []byte(`{"status":"ok"}`)) == nil
	}
	x := newExchange(c, w, r, near)
	defer x.finish()
	return x.run()
}

// discardBody reads past a body that is not needed. It returns false if that
// takes too long.
func (c *conn) discardBody() bool {
	if c.q.Length == 0 {
		return true
	}
	if c.net.SetReadDeadline(time.Now().Add(h1.LingerTime)) != nil {
		return false
	}
	body := c.reader.RequestBody(c.q.Length)
	for read := 0; read < h1.LingerBytes; {
		piece, err := body.Next()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		read += len(piece)
	}
	return false
}

// write writes to the caller. The deadline is set anew only when half of it has
// passed: that is often enough, and setting it is not free.
func (c *conn) write(b []byte) error {
	now := time.Now()
	if timeout := c.server.options.WriteTimeout; now.Sub(c.wrote) > timeout/2 {
		if err := c.net.SetWriteDeadline(now.Add(timeout)); err != nil {
			return err
		}
		c.wrote = now
	}
	_, err := c.net.Write(b)
	return err
}

// answer writes a whole answer.
func (c *conn) answer(w *worker, status int, contentType string, body []byte) error {
	w.head = c.appendHead(w.head[:0], status, contentType)
	w.head = h1.AppendLength(w.head, len(body))
	return c.send(w, body)
}

// send writes the head in w.head and a body.
func (c *conn) send(w *worker, body []byte) error {
	w.head = append(w.head, "\r\n"...)
	if string(c.q.Method) == "HEAD" {
		body = nil
	}
	if len(body) > maxJoined {
		return errors.Join(c.write(w.head), c.write(body))
	}
	w.head = append(w.head, body...)
	return c.write(w.head)
}

// maxJoined is the largest body that is copied behind its head to save a write.
const maxJoined = 64 << 10

func (c *conn) appendHead(dst []byte, status int, contentType string) []byte {
	dst = h1.AppendStatus(dst, status)
	dst = append(append(append(dst, "Content-Type: "...), contentType...), "\r\n"...)
	if c.q.Close {
		dst = append(dst, "Connection: close\r\n"...)
	}
	return dst
}

// answerProblem writes an error in the caller's dialect. It says
// whether to try again, which most clients would.
func (c *conn) answerProblem(w *worker, d dialect.Dialect, p *dialect.Problem) error {
	w.text = d.AppendError(w.text[:0], p)
	w.head = c.appendHead(w.head[:0], p.Status, "application/json")
	if p.Retry {
		w.head = append(w.head, "x-should-retry: true\r\nretry-after: 1\r\n"...)
	} else {
		w.head = append(w.head, "x-should-retry: false\r\n"...)
	}
	w.head = h1.AppendLength(w.head, len(w.text))
	return c.send(w, w.text)
}
