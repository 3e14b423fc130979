//go:build linux

package limatest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// sandboxImage is the image that is built inside.
const sandboxImage = enginetest.Image

// engineView shows the engine of tests on a port of the loopback interface, as an engine
// that does not have the image which is built inside: that gets another name.
func engineView(tb testing.TB) (port int) {
	tb.Helper()
	socket := strings.TrimPrefix(enginetest.Docker(tb), "unix://")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	own := fmt.Sprintf("atoll-test-vm:%d", os.Getpid())
	rename := strings.NewReplacer(sandboxImage, own, strings.ReplaceAll(sandboxImage, ":", "%3A"), strings.ReplaceAll(own, ":", "%3A"))
	view := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine"
		r.Out.URL.Path, r.Out.URL.RawQuery = rename.Replace(r.Out.URL.Path), rename.Replace(r.Out.URL.RawQuery)
		r.Out.URL.RawPath = ""
	}}
	l := listen(tb)
	server := &http.Server{Handler: view, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	ctx := context.WithoutCancel(tb.Context())
	tb.Cleanup(func() {
		request, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://engine/images/"+own, nil)
		if err == nil {
			if answer, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(request); err == nil {
				_ = answer.Body.Close() // 404 if it was never built
			}
		}
		transport.CloseIdleConnections()
	})
	tb.Cleanup(func() { _ = server.Close() })
	return portOf(l)
}
