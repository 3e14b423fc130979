package app_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// engineCall is a call of the engine's API, by method and the end of its path.
type engineCall struct {
	method, path string
	carriedOut   bool // the engine gets it, only the answer is lost
}

// trap stands between one process and its engine, and kills the process at the
// first call of a kind.
type trap struct {
	host   string
	victim chan *os.Process
}

// setTrap opens a trap on the site's engine.
func (s *site) setTrap(call engineCall) *trap {
	s.t.Helper()
	path := filepath.Join(s.dir, "trap.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	tr := &trap{host: "unix://" + path, victim: make(chan *os.Process, 1)}
	transport := unixTransport(s.env["DOCKER_HOST"])
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "engine"})
	}}
	var once sync.Once
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == call.method && strings.HasSuffix(r.URL.Path, call.path) {
			once.Do(func() { tr.spring(s, transport, call, r) })
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	s.t.Cleanup(func() { _ = server.Close(); transport.CloseIdleConnections() })
	return tr
}

func (tr *trap) spring(s *site, transport http.RoundTripper, call engineCall, r *http.Request) {
	if call.carriedOut {
		if err := carryOut(transport, r); err != nil {
			s.t.Errorf("the engine did not carry out %s %s: %v", call.method, call.path, err)
		}
	}
	_ = (<-tr.victim).Kill()
}

func carryOut(transport http.RoundTripper, r *http.Request) error {
	forward := r.Clone(r.Context())
	forward.URL.Scheme, forward.URL.Host, forward.RequestURI = "http", "engine", ""
	if r.ContentLength == 0 {
		forward.Body = http.NoBody // else it would be sent as a body of unknown length
	}
	resp, err := transport.RoundTrip(forward)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return err
}

// die runs a process into the trap.
func (tr *trap) die(s *site, cmd *exec.Cmd) {
	s.t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	tr.victim <- cmd.Process
	if err := cmd.Wait(); !wasKilled(cmd) {
		s.t.Fatalf("the process was not killed: %v\n%s", err, out.String())
	}
}
