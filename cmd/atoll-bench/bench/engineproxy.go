package bench

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"errors"
	"github.com/atoll-run/atoll/internal/errhint"
)

// countingEngine stands between Atoll and a real engine and counts the calls.
type countingEngine struct {
	Host  string // what to use as the engine's address
	calls atomic.Int64
	dir   string
	srv   *http.Server
}

// countCalls listens on a socket of its own and passes everything on to the
// engine at host.
func countCalls(ctx context.Context, host string) (*countingEngine, error) {
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return nil, errhint.With(errors.New("calls can be counted only on a local engine"), "set DOCKER_HOST to a unix socket")
	}
	dir, err := os.MkdirTemp("", "atoll")
	if err != nil {
		return nil, err
	}
	c := &countingEngine{dir: dir, Host: "unix://" + filepath.Join(dir, "engine.sock")}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", filepath.Join(dir, "engine.sock"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "engine"}) },
		FlushInterval: -1,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}},
	}
	c.srv = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.calls.Add(1)
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = c.srv.Serve(listener) }()
	return c, nil
}

// during is how many calls f makes.
func (c *countingEngine) during(f func() error) (int, error) {
	before := c.calls.Load()
	err := f()
	return int(c.calls.Load() - before), err
}

func (c *countingEngine) close() {
	_ = c.srv.Close()
	_ = os.RemoveAll(c.dir)
}
