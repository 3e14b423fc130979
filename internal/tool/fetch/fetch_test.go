package fetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/outbound"
	"github.com/atoll-run/atoll/internal/tool/fetch"
)

// network is this machine's, with names of its own. It plays a public address
// by connecting to a local one instead.
type network struct {
	mu    sync.Mutex
	names map[string][]string // each lookup takes the next, the last stays
	to    map[string]string   // "1.2.3.4:80" → where that really is
	asked []string            // addresses connected to
}

func (n *network) Lookup(_ context.Context, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answers := n.names[host]
	if len(answers) == 0 {
		return nil, fmt.Errorf("host %q: not found", host)
	}
	if len(answers) > 1 {
		n.names[host] = answers[1:]
	}
	var list []netip.Addr
	for text := range strings.SplitSeq(answers[0], ",") {
		list = append(list, netip.MustParseAddr(text))
	}
	return list, nil
}

func (n *network) Connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.asked = append(n.asked, to.String())
	local := n.to[to.String()]
	n.mu.Unlock()
	if local == "" {
		return nil, errors.New("connection refused")
	}
	return new(net.Dialer).DialContext(ctx, "tcp", local)
}

// serve starts a server that the network knows as a public address.
func (n *network) serve(t *testing.T, public string, handler http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	n.to[public] = server.Listener.Addr().String()
}

func newNetwork() *network {
	return &network{names: map[string][]string{"example.org": {"93.184.216.34"}}, to: map[string]string{}}
}

func TestGet(t *testing.T) {
	n := newNetwork()
	n.serve(t, "93.184.216.34:80", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "%s %s %s", r.Host, r.URL, r.UserAgent())
	})
	page, err := (&fetch.Fetcher{Network: n, UserAgent: "me"}).Get(t.Context(), "http://example.org/a?b#c")
	if err != nil {
		t.Fatal(err)
	}
	if page.Status != 200 || page.MediaType != "text/html" || page.Charset != "utf-8" || string(page.Body) != "example.org /a?b me" {
		t.Errorf("got %+v %s", page, page.Body)
	}
}

func TestRefusedAddresses(t *testing.T) {
	n := newNetwork()
	n.names["localhost"] = []string{"127.0.0.1"}
	n.names["metadata.internal"] = []string{"169.254.169.254"}
	n.names["mixed.example"] = []string{"93.184.216.34,10.0.0.1"} // one bad address spoils the name
	n.names["mapped.example"] = []string{"::ffff:127.0.0.1"}
	for _, address := range []string{
		"http://localhost/", "http://127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://metadata.internal/latest", "http://169.254.169.254/",
		"http://mixed.example/", "http://mapped.example/", "http://0.0.0.0/", "http://[fd00:ec2::254]/", "https://10.0.0.1/", "http://[fe80::1%25eth0]/",
	} {
		_, err := (&fetch.Fetcher{Network: n}).Get(t.Context(), address)
		if !errors.Is(err, outbound.ErrNotPublic) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"", "example.org", "ftp://example.org/", "file:///etc/passwd", "gopher://example.org", "http://", "http://user:secret@example.org/", "http://example.org:22/",
		"http://example.org:0/", "http://example.org:99999/", "javascript:alert(1)", "http://exa mple.org/", "http://example.org/\x00", "http://nowhere.example/",
		"http://" + strings.Repeat("a", 5000) + "/",
	} {
		if _, err := (&fetch.Fetcher{Network: n}).Get(t.Context(), address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40q: %v", address, err)
		}
	}
	if len(n.asked) != 0 {
		t.Errorf("connected to %v", n.asked)
	}
}

func TestPermittedAddresses(t *testing.T) {
	n := newNetwork()
	n.serve(t, "10.1.2.3:8080", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "inside") })
	f := &fetch.Fetcher{Network: n, Permit: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	if page, err := f.Get(t.Context(), "http://10.1.2.3:8080/"); err != nil || string(page.Body) != "inside" {
		t.Errorf("got %v", err)
	}
	if _, err := f.Get(t.Context(), "http://10.2.0.1/"); !errors.Is(err, outbound.ErrNotPublic) {
		t.Errorf("got %v", err)
	}
}

// TestRebinding is a name that is public when it is checked and private when it
// is used: the address that was checked is the one that is used.
func TestRebinding(t *testing.T) {
	n := newNetwork()
	n.names["rebind.example"] = []string{"93.184.216.34", "127.0.0.1"}
	n.serve(t, "93.184.216.34:80", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/again", http.StatusFound)
		}
	})
	_, err := (&fetch.Fetcher{Network: n}).Get(t.Context(), "http://rebind.example/")
	if !errors.Is(err, outbound.ErrNotPublic) {
		t.Errorf("got %v", err)
	}
	if fmt.Sprint(n.asked) != "[93.184.216.34:80]" {
		t.Errorf("connected to %v", n.asked)
	}
}

func TestRedirects(t *testing.T) {
	n := newNetwork()
	var referers []string
	n.serve(t, "93.184.216.34:80", func(w http.ResponseWriter, r *http.Request) {
		referers = append(referers, r.Referer())
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/end":
			fmt.Fprint(w, "there")
		case "/five":
			http.Redirect(w, r, "/end", http.StatusMovedPermanently)
		default:
			http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
		}
	})
	f := &fetch.Fetcher{Network: n}
	page, err := f.Get(t.Context(), "http://example.org/five")
	if err != nil || page.URL.Path != "/end" || string(page.Body) != "there" {
		t.Errorf("got %v", err)
	}
	if _, err := f.Get(t.Context(), "http://example.org/loop"); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("got %v", err)
	}
	for _, to := range []string{"http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://[::1]:8080/", "//localhost/", "http://10.0.0.1/"} {
		n.names["localhost"] = []string{"127.0.0.1"}
		if _, err := f.Get(t.Context(), "http://example.org/?to="+to); !errors.Is(err, outbound.ErrNotPublic) {
			t.Errorf("redirect to %s: %v", to, err)
		}
	}
	for _, to := range []string{"file:///etc/passwd", "gopher://example.org/", "http://a:b@example.org/end", "http://example.org:25/"} {
		if _, err := f.Get(t.Context(), "http://example.org/?to="+to); err == nil {
			t.Errorf("redirect to %s was followed", to)
		}
	}
	if strings.Join(referers, "") != "" {
		t.Errorf("servers were told where we came from: %q", referers)
	}
}

func TestLargeAnswers(t *testing.T) {
	n := newNetwork()
	bomb := bomb()
	n.serve(t, "93.184.216.34:80", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		case "/headers":
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 100))
			}
		}
	})
	f := &fetch.Fetcher{Network: n}
	for _, path := range []string{"/endless", "/bomb"} {
		page, err := f.Get(t.Context(), "http://example.org"+path)
		if err != nil || !page.Truncated || len(page.Body) != fetch.MaxBytes {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := f.Get(t.Context(), "http://example.org/headers"); err == nil {
		t.Error("endless headers were read")
	}
}

// bomb is 32 MiB of zeros, compressed.
func bomb() []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.CopyN(w, zeros{}, 32<<20)
	_ = w.Close()
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestCancel(t *testing.T) {
	n := newNetwork()
	started := make(chan struct{})
	n.serve(t, "93.184.216.34:80", func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := (&fetch.Fetcher{Network: n}).Get(ctx, "http://example.org/"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
