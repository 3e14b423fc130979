package browsertest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/cli"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// atoll runs one command line on the installation.
func (s *site) atoll(t *testing.T, args ...string) (out, said string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = cli.Main(t.Context(), append(args, "--config", s.file), &console.Terminal{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Getenv: s.getenv})
	return stdout.String(), stderr.String(), code
}

// testCommands checks the verbs of browsers, through the gateway and beside it.
func (s *site) testCommands(t *testing.T) {
	for _, flag := range []string{"--local=false", "--local"} {
		out, said, code := s.atoll(t, "browser", "list", flag)
		if code != 0 || !strings.Contains(out, s.name) || !strings.Contains(out, "open") || !strings.Contains(out, "view cdp") || !strings.Contains(out, "agent:main:one") {
			t.Errorf("%s: %d %s %s", flag, code, out, said)
		}
		t.Run("attach "+flag, func(t *testing.T) { s.testAttach(t, flag) })
	}
	if _, said, code := s.atoll(t, "browser", "attach", "agent:closed:one"); code == 0 || !strings.Contains(said, "may not attach") || !strings.Contains(said, "sandbox.browser.cdp") {
		t.Errorf("%d %s", code, said)
	}
	if _, said, code := s.atoll(t, "browser", "stop", "no-such"); code == 0 || !strings.Contains(said, "atoll browser list") {
		t.Errorf("%d %s", code, said)
	}
	out, said, code := s.atoll(t, "browser", "watch", s.name, "--no-open")
	if code != 0 || !strings.HasPrefix(out, "http://"+s.address+"/ui/view.html#"+s.name+"/view/") {
		t.Errorf("%d %s %s", code, out, said)
	}
}

// testAttach checks that a program attaches through the port of `atoll browser attach`,
// and that the registry has the port as long as it is open.
func (s *site) testAttach(t *testing.T, flag string) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	read, write := io.Pipe()
	var said bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, []string{"browser", "attach", s.name, "--json", flag, "--config", s.file}, &console.Terminal{In: strings.NewReader(""), Out: write, Err: &said, Getenv: s.getenv})
		_ = write.Close()
	}()
	var at struct{ Browser, URL string }
	if err := json.NewDecoder(bufio.NewReader(read)).Decode(&at); err != nil || at.Browser != s.name {
		t.Fatalf("%+v, %v, %s", at, err, said.String())
	}
	go func() { _, _ = io.Copy(io.Discard, read) }()
	var v api.BrowserVersion
	getJSON(t, at.URL+"/json/version", &v)
	if !strings.HasPrefix(v.Browser, "HeadlessChrome/") && !strings.HasPrefix(v.Browser, "Chrome/") || !strings.Contains(v.UserAgent, "Mozilla") {
		t.Errorf("%+v", v)
	}
	var tabs []struct{ ID, Type, URL string }
	if getJSON(t, at.URL+"/json/list", &tabs); len(tabs) == 0 || tabs[0].Type != "page" {
		t.Errorf("%+v", tabs)
	}
	ws, status := dial(t, v.Socket, nil)
	if ws == nil {
		t.Fatal(status)
	}
	p := &program{t: t, ws: ws}
	if got := p.call("", "Browser.getVersion", `{}`); !strings.Contains(got, "Chrome") {
		t.Error(got)
	}
	if got := p.call("", "Browser.close", `{}`); !strings.Contains(got, "is refused") {
		t.Error(got)
	}
	if _, status := dial(t, v.Socket, http.Header{"Origin": {"https://evil.example"}}); status != http.StatusForbidden {
		t.Error(status)
	}
	if e := s.entry(t); e.CDPPort == 0 || !strings.HasSuffix(at.URL, ":"+strconv.Itoa(e.CDPPort)) {
		t.Errorf("the registry has port %d of %s", e.CDPPort, at.URL)
	}
	stop()
	<-ended
	if e := s.entry(t); e.CDPPort != 0 {
		t.Errorf("the registry still has port %d", e.CDPPort)
	}
}

// entry returns what `atoll sandbox list --browser` shows of the browser.
func (s *site) entry(t *testing.T) *sandbox.Entry {
	t.Helper()
	out, said, _ := s.atoll(t, "sandbox", "list", "--browser", "--json")
	var list struct{ Browsers []*sandbox.Entry }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("%v: %s %s", err, out, said)
	}
	for _, e := range list.Browsers {
		if e.ContainerName == s.name {
			return e
		}
	}
	t.Fatalf("no %s in %s", s.name, out)
	return nil
}

// testSocket checks that a caller on the owner's socket is told a WebSocket that works,
// and that the registry has the gateway's port while a program is attached by it.
func (s *site) testSocket(t *testing.T) {
	c, err := client.New(client.Options{Socket: serve.SocketPath(s.app.Settings)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	endpoint, err := c.AttachBrowser(t.Context(), s.name)
	if err != nil {
		t.Fatal(err)
	}
	ws, status := dial(t, endpoint.WSEndpoint, nil)
	if ws == nil {
		t.Fatal(endpoint.WSEndpoint, status)
	}
	if got := (&program{t: t, ws: ws}).call("", "Browser.getVersion", `{}`); !strings.Contains(got, "Chrome") {
		t.Error(got)
	}
	if port := s.entry(t).CDPPort; !strings.HasSuffix(s.address, ":"+strconv.Itoa(port)) {
		t.Errorf("the registry has port %d", port)
	}
	_ = ws.CloseNow()
	waitFor(t, func() bool { return s.entry(t).CDPPort == 0 })
}

func getJSON(t *testing.T, url string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		t.Fatal(url, err)
	}
}
