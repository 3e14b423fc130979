package protocol

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"unicode/utf8"

	"github.com/coder/websocket"
)

// CloseUnsupported is the close code for a message that is not text.
const CloseUnsupported = 1003

// maxReason is the longest reason in a close frame (RFC 6455).
const maxReason = 123

// ErrNotText is a message that was not valid UTF-8 text.
var ErrNotText = errors.New("the message is not text")

// Conn carries text messages, each a JSON document. Reading is for one goroutine at
// a time; everything else may be called concurrently.
//
// An error of Read or Write, and a context that ends during one, ends the
// connection.
type Conn struct {
	ws   *websocket.Conn
	cork *cork // nil on the client's side
}

// AcceptOptions configure Accept.
type AcceptOptions struct {
	MaxPayload int64    // of a message; 0 is MaxEarlyPayload, until Limit raises it
	Origins    []string // allowed browser origins, besides the request's own host
	// Buffers holds memory for WriteAll, which connections share; nil keeps none.
	Buffers *sync.Pool
}

// Accept upgrades a request to a connection. On an error it has answered the
// request. Messages are not compressed: a small one could expand to a large one.
func Accept(w http.ResponseWriter, r *http.Request, o AcceptOptions) (*Conn, error) {
	k := &corkingWriter{ResponseWriter: w, pool: o.Buffers}
	if k.pool == nil {
		k.pool = &sync.Pool{}
	}
	ws, err := websocket.Accept(k, r, &websocket.AcceptOptions{OriginPatterns: o.Origins})
	if err != nil {
		return nil, err
	}
	c := newConn(ws, o.MaxPayload, MaxEarlyPayload)
	c.cork = k.cork
	return c, nil
}

// DialOptions configure Dial.
type DialOptions struct {
	MaxPayload int64       // of a message; 0 is MaxPayload
	Header     http.Header // of the request
	TLS        *tls.Config // for wss; nil is the system's
	// Dial opens the connection; nil is TCP. A gateway on a unix socket needs it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Dial connects to ws://host:port or wss://host:port. The context bounds the
// handshake only. Redirects are not followed: they would send a token to another
// host.
func Dial(ctx context.Context, url string, o DialOptions) (*Conn, error) {
	transport := &http.Transport{TLSClientConfig: o.TLS, DialContext: o.Dial, DisableKeepAlives: true}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	ws, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client, HTTPHeader: o.Header})
	if err != nil {
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	return newConn(ws, o.MaxPayload, MaxPayload), nil
}

func newConn(ws *websocket.Conn, most, usual int64) *Conn {
	c := &Conn{ws: ws}
	if most == 0 {
		most = usual
	}
	c.Limit(most)
	return c
}

// Limit sets the largest message. A larger one closes the connection with
// CloseTooBig.
func (c *Conn) Limit(most int64) { c.ws.SetReadLimit(most) }

// Read returns the next message. Pings are answered, and pongs received, only
// during a Read.
func (c *Conn) Read(ctx context.Context) ([]byte, error) { return c.ReadWith(ctx, io.ReadAll) }

// ReadWith returns the next message, which gather reads once it has begun to
// arrive. An error of gather ends the connection.
func (c *Conn) ReadWith(ctx context.Context, gather func(io.Reader) ([]byte, error)) ([]byte, error) {
	kind, r, err := c.ws.Reader(ctx)
	if err != nil {
		return nil, err
	}
	data, err := gather(r)
	if err != nil {
		return nil, err
	}
	if kind != websocket.MessageText || !utf8.Valid(data) {
		_ = c.Close(CloseUnsupported, ErrNotText.Error())
		return nil, ErrNotText
	}
	return data, nil
}

// Write sends a message.
func (c *Conn) Write(ctx context.Context, data []byte) error {
	return c.ws.Write(ctx, websocket.MessageText, data)
}

// Ping sends a ping and waits for the pong.
func (c *Conn) Ping(ctx context.Context) error { return c.ws.Ping(ctx) }

// Close sends a close frame and waits a few seconds for the other side's.
func (c *Conn) Close(code int, reason string) error {
	if len(reason) > maxReason {
		reason = cut(reason, maxReason)
	}
	return c.ws.Close(websocket.StatusCode(code), reason)
}

// Drop closes the connection without a close frame, also while a Close waits for
// the rest of an unfinished message.
func (c *Conn) Drop() {
	if c.cork != nil {
		_ = c.cork.Conn.Close()
	}
	_ = c.ws.CloseNow()
}

// cut shortens text without breaking a character.
func cut(text string, most int) string {
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
