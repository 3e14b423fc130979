package gateway_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answerWith answers with a word, and with the caller in the context.
func answerWith(word string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
			return
		}
		name := "nobody"
		if c := access.FromContext(r.Context()); c != nil {
			name = c.Name
		}
		_, _ = io.WriteString(w, word+" "+name)
	})
}

// open starts a gateway on a free port.
func open(t *testing.T, change func(*gateway.Options)) *gateway.Server {
	t.Helper()
	o := gateway.Options{Listen: []string{"127.0.0.1:0"}, Upgrades: []gateway.Route{{Path: "/", Handler: answerWith("ws")}}, REST: answerWith("rest")}
	if change != nil {
		change(&o)
	}
	s, err := gateway.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask makes one request, with headers as NAME: VALUE, on a connection of its own.
func ask(t *testing.T, s *gateway.Server, path string, headers ...string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addresses()[0]+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	return do(t, client, r)
}

func do(t *testing.T, client *http.Client, r *http.Request) (status int, body string) {
	t.Helper()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// overSocket is a client of the owner's socket.
func overSocket(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}}
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "gateway.sock") }

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}
