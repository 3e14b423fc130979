package localport

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
)

// stub is a browser with one tab.
type stub struct{}

func (stub) Version(context.Context) (*api.BrowserVersion, error) {
	return &api.BrowserVersion{Browser: "Chrome/1", Socket: "ws://elsewhere/"}, nil
}

func (stub) Tabs(context.Context) (*api.BrowserTabs, error) {
	return &api.BrowserTabs{Tabs: []api.BrowserTab{{ID: "A", URL: "about:blank", Title: "Shop"}}}, nil
}

func (stub) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }

// ask sends a request to a port and returns the answer.
func ask(t *testing.T, url string, header map[string]string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.Host = header["Host"]
	answer, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all)
}

// TestAttackBrowser20_OwnPort: the owner's port answers its owner's programs, and no web
// page, whatever name it has made of this machine's address.
func TestAttackBrowser20_OwnPort(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, stub{}) }()
	base := "http://" + l.Addr().String()
	_, text := ask(t, base+"/json/version", nil)
	var v api.BrowserVersion
	if err := json.Unmarshal([]byte(text), &v); err != nil || v.Browser != "Chrome/1" || !strings.HasPrefix(v.Socket, "ws://"+l.Addr().String()+"/devtools/browser/") {
		t.Fatalf("%s, %v", text, err)
	}
	socket := strings.Replace(v.Socket, "ws://", "http://", 1)
	for _, c := range []struct {
		url    string
		header map[string]string
		status int
	}{
		{base + "/json/list/", nil, http.StatusOK},
		{socket, nil, http.StatusTeapot},
		{base + "/devtools/browser/other", nil, http.StatusNotFound},
		{base + "/json/new?about:blank", nil, http.StatusNotFound},
		{socket, map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		{socket, map[string]string{"Origin": "null"}, http.StatusForbidden},
		{base + "/json/version", map[string]string{"Sec-Fetch-Site": "none"}, http.StatusForbidden},
		{base + "/json/version", map[string]string{"Host": "evil.example"}, http.StatusMisdirectedRequest},
		{base + "/json/version", map[string]string{"Host": "localhost:1"}, http.StatusOK},
	} {
		if status, text := ask(t, c.url, c.header); status != c.status {
			t.Errorf("%+v: %d %s", c, status, text)
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestOtherUsers checks that another user's connection is refused, and one that the kernel
// does not know.
func TestOtherUsers(t *testing.T) {
	h := newHandler(stub{}, "127.0.0.1:1")
	h.isOwner = func(*http.Request) bool { return false }
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/json/version", http.NoBody))
	if w.Code != http.StatusForbidden {
		t.Error(w.Code)
	}
	table := filepath.Join(t.TempDir(), "tcp")
	line := "   0: 0100007F:0016 0100007F:8AE5 01 00000000:00000000 00:00000000 00000000  1234        0 1 1 0\n"
	if err := os.WriteFile(table, []byte("  sl  local_address rem_address\n"+line), 0o600); err != nil {
		t.Fatal(err)
	}
	here, there := netip.MustParseAddrPort("127.0.0.1:22"), netip.MustParseAddrPort("127.0.0.1:35557")
	if uid, found := userOf(table, here, there); !found || uid != 1234 {
		t.Error(uid, found)
	}
	if _, found := userOf(table, there, here); found {
		t.Error("the ends were taken for one another")
	}
}
