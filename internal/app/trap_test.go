package app_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// engineCall is a call of the engine's API, by method and the end of its path.
type engineCall struct {
	method, path string
	carriedOut   bool // the engine gets it, only the answer is lost
}

// setTrap stands between the site's engine and whoever uses the host that comes
// back. At the first call of a kind it springs; nobody gets an answer to that.
func (s *site) setTrap(call engineCall, spring func()) (host string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "trap.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	transport := unixTransport(s.env["DOCKER_HOST"])
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "engine"})
	}}
	var once sync.Once
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == call.method && strings.HasSuffix(r.URL.Path, call.path) {
			sprung := false
			once.Do(func() {
				sprung = true
				if call.carriedOut {
					s.carryOut(transport, r)
				}
				spring()
			})
			if sprung {
				panic(http.ErrAbortHandler)
			}
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	s.t.Cleanup(func() { _ = server.Close(); transport.CloseIdleConnections() })
	return "unix://" + path
}

// carryOut lets the engine do what it was asked to.
func (s *site) carryOut(transport http.RoundTripper, r *http.Request) {
	forward := r.Clone(r.Context())
	forward.URL.Scheme, forward.URL.Host, forward.RequestURI = "http", "engine", ""
	if r.ContentLength == 0 {
		forward.Body = http.NoBody // else it would be sent as a body of unknown length
	}
	resp, err := transport.RoundTrip(forward)
	if err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		s.t.Errorf("%s %s: %s: %s, %v", r.Method, r.URL.Path, resp.Status, answer, err)
	}
}

// killAtCall runs a process that is killed at its first call of a kind.
func (s *site) killAtCall(call engineCall, o order) {
	s.t.Helper()
	victim := make(chan *os.Process, 1)
	direct := s.env["DOCKER_HOST"]
	s.env["DOCKER_HOST"] = s.setTrap(call, func() { _ = (<-victim).Kill() })
	cmd := s.process(o)
	s.env["DOCKER_HOST"] = direct
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	victim <- cmd.Process
	if err := cmd.Wait(); !wasKilled(cmd) {
		s.t.Fatalf("the process was not killed: %v\n%s", err, out.String())
	}
}
