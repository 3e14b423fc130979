package devtools

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// handshakeTimeout bounds the WebSocket handshake.
const handshakeTimeout = 10 * time.Second

// DialSocket opens a WebSocket of a browser whose messages are bounded. dial opens
// connections to its port.
func DialSocket(ctx context.Context, url string, dial func(context.Context) (net.Conn, error)) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	client := &http.Client{
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	ws, answer, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		if answer != nil && answer.Body != nil {
			_ = answer.Body.Close()
		}
		return nil, fmt.Errorf("connect to the browser: %w", err)
	}
	ws.SetReadLimit(MaxMessage)
	return ws, nil
}
