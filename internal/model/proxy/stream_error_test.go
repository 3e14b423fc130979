package proxy_test

import (
	"bufio"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
)

// A caller that got the error event of a broken stream has a complete answer, and
// asks again over the same connection. Closing that would meet its next request
// on the way.
func TestToldOfACutTheCallerAsksAgain(t *testing.T) {
	var mended atomic.Bool
	m := newModel(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n")
		if !mended.Load() {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	p := newProxy(t, m.URL, nil).listen(terms())
	conn := p.dial()
	answers := bufio.NewReader(conn)
	ask := func() answer {
		_, err := io.WriteString(conn, request("POST", chatPath, helloStream))
		must(t, err)
		return readAnswer(answers, "POST")
	}
	for range 3 {
		ask().want(t, 200, "one", "upstream_failed")
	}
	mended.Store(true)
	ask().want(t, 200, "one", "[DONE]")
}
