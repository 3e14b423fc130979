package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/model/proxy"
)

// TestModelsThatFallSilentAreGivenUp: an answer that has begun and does not go on
// is ended in the caller's dialect, or refused if nothing of it was passed on yet.
func TestModelsThatFallSilentAreGivenUp(t *testing.T) {
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/embeddings" {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"model":"good-1",`)
		} else {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"model\":\"good-1\",\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n")
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.Providers[0].Upstream.IdleTimeout = 200 * time.Millisecond }).listen(terms())
	p.post(chatPath, helloStream).want(t, 200, `"w"`, `data: {"error":`, "the model fell silent")
	p.post("/v1/embeddings", `{"model":"good","input":"hi"}`).want(t, 504, "the model fell silent")
	if c := p.spent("run-1"); c.Calls != 2 || c.Estimated != 2 {
		t.Errorf("charged %+v", c)
	}
}

// An upstream that accepts connections and never answers the TLS handshake.
func TestUpstreamsWithoutATLSHandshakeAreGivenUp(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = deaf.Close() })
	p := newProxy(t, "https://"+deaf.Addr().String(), func(o *proxy.Options) { o.Providers[0].Upstream.ConnectTimeout = 200 * time.Millisecond }).listen(terms())
	p.post(chatPath, hello).want(t, 502, "cannot be reached")
	if c := p.spent("run-1"); c.MicroUSD != 0 || c.Calls != 0 {
		t.Errorf("charged %+v", c)
	}
}
