package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
)

// tap passes requests on to a real engine and remembers them. before may look
// at a request first, and answer it itself by returning true.
type tap struct {
	host string

	mu     sync.Mutex
	calls  []string
	before func(http.ResponseWriter, *http.Request) bool
}

func newTap(t *testing.T, engine string) *tap {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "tap.sock")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(engine, "unix://"))
	}}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport = transport
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	tp := &tap{host: "unix://" + socket}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		tp.mu.Lock()
		tp.calls = append(tp.calls, req.Method+" "+req.URL.Path)
		before := tp.before
		tp.mu.Unlock()
		if before == nil || !before(w, req) {
			proxy.ServeHTTP(w, req)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close(); transport.CloseIdleConnections() })
	return tp
}

func (tp *tap) set(before func(http.ResponseWriter, *http.Request) bool) {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	tp.before, tp.calls = before, nil
}

func (tp *tap) seen() []string {
	tp.mu.Lock()
	defer tp.mu.Unlock()
	return slices.Clone(tp.calls)
}

// A fresh process that knows the API version finds a running sandbox, and is on
// its wire, with a single call.
func TestOpenAndDialCostOneCall(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		i := l.start(t)
		sh(t, i, "true") // it listens by now
		version, err := l.APIVersion(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tp := newTap(t, l.options.Host)
		fresh := newLab(t, tp.host, l.options.Flavor, func(o *Options) {
			o.APIVersion, o.Installation, o.StateDir = version, l.options.Installation, l.options.StateDir
		})
		opened, err := fresh.Open(t.Context(), i.name)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := opened.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := talk(t, conn, map[string]any{"argv": []string{"/bin/echo", "here"}}); got.Output != "here\n" {
			t.Errorf("the guest says %q", got.Output)
		}
		want := []string{fmt.Sprintf("GET /v%s/containers/%s/json", version, i.name)}
		if got := tp.seen(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		if got := opened.Seen(); got.State != sandbox.StateRunning || got.Labels[sandbox.LabelConfigHash] != "hash" {
			t.Errorf("seen: %+v", got)
		}
	})
}

// What a glance cannot make sense of is looked at again, closely.
func TestGlanceFallsBack(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker)
	i := l.start(t)
	for name, odd := range map[string]func(http.ResponseWriter){
		"server error":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"not JSON":       func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") },
		"nothing in it":  func(w http.ResponseWriter) { _, _ = io.WriteString(w, "{}") },
		"cut off":        func(w http.ResponseWriter) { w.Header().Set("Content-Length", "99"); _, _ = io.WriteString(w, "{") },
		"no answer":      func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"wrong version":  func(w http.ResponseWriter) { refuseOnce("client version 1.41 is too new")(w, nil) },
		"wrong language": func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"Id":5}`) },
	} {
		tp := newTap(t, l.options.Host)
		fresh := newLab(t, tp.host, Docker, func(o *Options) {
			o.APIVersion, o.Installation, o.StateDir = "1.41", l.options.Installation, l.options.StateDir
		})
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			tp.set(func(w http.ResponseWriter, _ *http.Request) (answered bool) {
				once.Do(func() { answered = true; odd(w) })
				return answered
			})
			opened, err := fresh.Open(t.Context(), i.name)
			if err != nil {
				t.Fatal(err)
			}
			if got := opened.Seen(); got.ID != i.id || got.State != sandbox.StateRunning {
				t.Errorf("seen: %+v", got)
			}
		})
	}
}

func TestVersionThatTheEngineRefuses(t *testing.T) {
	for _, version := range []string{"1.99", "1.41"} {
		t.Run(version, func(t *testing.T) {
			tp := newTap(t, enginetest.Docker(t))
			l := newLab(t, tp.host, Docker, func(o *Options) { o.APIVersion = version })
			if version == "1.41" { // an engine of the future, which has forgotten it
				tp.set(refuseOnce("client version 1.41 is too old. Minimum supported API version is 1.44"))
			}
			if _, err := l.Open(t.Context(), "atoll-test-no-such"); !errors.Is(err, sandbox.ErrNotFound) {
				t.Errorf("open: %v", err)
			}
			if got, err := l.APIVersion(t.Context()); err != nil || got != "1.41" {
				t.Errorf("settled on %q, %v", got, err)
			}
		})
	}
}

func refuseOnce(message string) func(http.ResponseWriter, *http.Request) bool {
	var once sync.Once
	return func(w http.ResponseWriter, _ *http.Request) (answered bool) {
		once.Do(func() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = fmt.Fprintf(w, `{"message":%q}`, message)
			answered = true
		})
		return answered
	}
}

func TestEngineThatIsTooOld(t *testing.T) {
	tp := newTap(t, enginetest.Docker(t))
	tp.set(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Api-Version", "1.40")
		_, _ = io.WriteString(w, "OK")
		return true
	})
	l := newLab(t, tp.host, Docker)
	_, err := l.APIVersion(t.Context())
	if !errors.Is(err, sandbox.ErrUnsupported) || !strings.Contains(errhint.Of(err), "20.10") {
		t.Errorf("got %v, hint %q", err, errhint.Of(err))
	}
	if _, err := New(Options{Host: tp.host, Flavor: Docker, Installation: "x", StateDir: "/x", APIVersion: "1.39",
		Guest: func(string) ([]byte, error) { return nil, nil }}); !errors.Is(err, sandbox.ErrUnsupported) {
		t.Errorf("a remembered version that is too old: %v", err)
	}
}

func TestEngineThatIsNotThere(t *testing.T) {
	host := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	for _, version := range []string{"", "1.41"} {
		l := newLab(t, host, Docker, func(o *Options) { o.APIVersion = version })
		_, openErr := l.Open(t.Context(), "x")
		_, listErr := l.List(t.Context())
		_, createErr := l.Create(t.Context(), l.spec())
		for verb, err := range map[string]error{"open": openErr, "list": listErr, "create": createErr} {
			if !errors.Is(err, sandbox.ErrUnavailable) || !strings.Contains(errhint.Of(err), "systemctl start docker") || !strings.Contains(err.Error(), host) {
				t.Errorf("%s: %v, hint %q", verb, err, errhint.Of(err))
			}
		}
		gaps := l.Check(t.Context(), l.spec())
		if len(gaps) != 1 || gaps[0].Field != "backend" || gaps[0].Remedy == "" {
			t.Errorf("gaps: %+v", gaps)
		}
	}
}

func TestHintsForReachingAnEngine(t *testing.T) {
	refused := errors.New("permission denied while trying to connect")
	cases := []struct {
		flavor Flavor
		err    error
		want   string
	}{
		{Docker, errors.New("no such file"), "systemctl start docker"},
		{Docker, refused, "docker group"},
		{Podman, errors.New("no such file"), "podman.socket"},
		{Podman, refused, "systemctl --user start podman.socket"},
	}
	for _, c := range cases {
		e := &engine{flavor: c.flavor}
		if got := e.reachHint(c.err); !strings.Contains(got, c.want) {
			t.Errorf("%s, %v: hint %q", c.flavor, c.err, got)
		}
	}
}

// The caller's patience may end while the engine is making the container. What
// it makes after that must not stay.
func TestCreationThatIsGivenUp(t *testing.T) {
	onEach(t, func(t *testing.T, l *lab) {
		tp := newTap(t, l.options.Host)
		impatient := newLab(t, tp.host, l.options.Flavor, func(o *Options) { o.Installation, o.StateDir = l.options.Installation, l.options.StateDir })
		ctx, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		tp.set(func(w http.ResponseWriter, req *http.Request) bool {
			if !strings.HasSuffix(req.URL.Path, "/containers/create") {
				return false
			}
			forwardAnyway(t, l, req)
			giveUp()
			<-req.Context().Done() // the answer never comes
			return true
		})
		spec := impatient.spec()
		if _, err := impatient.Create(ctx, spec); !errors.Is(err, context.Canceled) {
			t.Errorf("create: %v", err)
		}
		if left := mustList(t, l); len(left) != 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// forwardAnyway carries a request to the engine, as if its caller still waited.
func forwardAnyway(t *testing.T, l *lab, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	cli, err := l.engine.client(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	conn, err := cli.Dialer()(ctx)
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		req.URL.RequestURI(), len(body), body)
	_, _ = io.Copy(io.Discard, conn)
}

// Our own introduction replaces the client's; the class of the error stays.
func TestErrorsKeepTheEnginesWords(t *testing.T) {
	l := newLab(t, enginetest.Docker(t), Docker)
	_, err := ask(t.Context(), l.engine, func(c *client.Client) (client.VolumeInspectResult, error) {
		return c.VolumeInspect(t.Context(), "atoll-test-no-such", client.VolumeInspectOptions{})
	})
	if !isNotFound(err) || strings.Contains(err.Error(), "Error response from daemon") || !strings.Contains(err.Error(), "atoll-test-no-such") {
		t.Errorf("got %v", err)
	}
}
