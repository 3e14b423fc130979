package app_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/e2b"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/grouptest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// e2bClient is a client of E2B that knows no SDK.
type e2bClient struct {
	t   *testing.T
	g   *gatewayProcess
	key string

	ID      string `json:"sandboxID"`
	Envd    string `json:"envdAccessToken"`
	Traffic string `json:"trafficAccessToken"`
}

// e2bKey makes a key of an account.
func (s *site) e2bKey(account string, sandboxes int) string {
	s.t.Helper()
	text, _, err := serve.Tokens(s.open().Installation).Create(s.t.Context(), access.Spec{Scope: access.Run, Account: account, E2B: true, Quota: access.Quota{Sandboxes: sandboxes}})
	if err != nil || len(text.Reveal()) != len("e2b_")+64 {
		s.t.Fatal(err)
	}
	return text.Reveal()
}

// The SDK of E2B, as it is published, works with nothing but its environment changed, on
// every runtime. Engines have no snapshots.
func TestE2BSDK(t *testing.T) {
	t.Parallel()
	need.Time(t, "it runs a package that npm has installed")
	out, err := exec.CommandContext(t.Context(), "../../scripts/sdks.sh", "dir", "e2b").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(strings.TrimSpace(string(out)), "node_modules")
	if _, err := os.Stat(filepath.Join(modules, "e2b")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up e2b", err))
	}
	t.Run("linux", func(t *testing.T) {
		t.Parallel()
		grouptest.Need(t)
		s, _ := gatewaySite(t)
		s.runE2BSDK(t, modules, "")
	})
	t.Run("docker", func(t *testing.T) {
		t.Parallel()
		s := newSite(t)
		s.set("agents.defaults.sandbox.docker.image", enginetest.Image)
		s.runE2BSDK(t, modules, "a snapshot")
	})
}

// runE2BSDK runs the program for the SDK against a gateway, with all its steps but some.
func (s *site) runE2BSDK(t *testing.T, modules, leftOut string) {
	t.Helper()
	g := s.gateway(time.Minute)
	dir := t.TempDir()
	program, err := os.ReadFile(filepath.Join("testdata", "e2b.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "e2b.mjs"), program, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	url := "http://" + g.address + e2b.Path
	cmd := exec.CommandContext(t.Context(), filepath.Join(modules, ".bin", "node"), "e2b.mjs")
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "E2B_API_URL=" + url, "E2B_SANDBOX_URL=" + url, "E2B_API_KEY=" + s.e2bKey("acme", 4),
		"E2B_TEST_OTHER_KEY=" + s.e2bKey("other", 0), "E2B_TEST_ADDRESS=" + g.address, "E2B_TEST_LEFT_OUT=" + leftOut,
	}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(`"failures":0`)) {
		t.Errorf("%v\n%s", err, out)
	}
	// A sandbox past its deadline is gone for clients before its container is.
	eventually(t, "sandboxes are not removed", func() bool {
		list, err := g.Sandboxes(t.Context(), api.SandboxQuery{})
		return err == nil && len(list.Sandboxes) == 0
	})
	s.nothingMade(g)
}

// ask sends a request to the control plane.
func (c *e2bClient) ask(method, path, body string) (int, string) {
	c.t.Helper()
	return c.do(method, path, strings.NewReader(body), "X-API-KEY", c.key, "Content-Type", "application/json")
}

// do sends a request with headers.
func (c *e2bClient) do(method, path string, body io.Reader, header ...string) (int, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.g.address+e2b.Path+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := askRoutes.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // what there is of it
	return answer.StatusCode, string(text)
}

// inside sends a request to the sandbox, as the Python client does.
func (c *e2bClient) inside(method, path, kind string, body io.Reader, header ...string) (int, string) {
	c.t.Helper()
	return c.do(method, path, body, append([]string{
		"E2b-Sandbox-Id", c.ID, "E2b-Sandbox-Port", "49983", "X-Access-Token", c.Envd, "Content-Type", kind, "User-Agent", "e2b-python-sdk/2.0.0", "Connect-Protocol-Version", "1",
	}, header...)...)
}

// call calls a procedure with one message.
func (c *e2bClient) call(procedure, message string) (int, string) {
	c.t.Helper()
	return c.inside(http.MethodPost, procedure, "application/json", strings.NewReader(message))
}

// stream calls a procedure whose answer is a stream, and returns its messages.
func (c *e2bClient) stream(procedure, message string, header ...string) (list []string) {
	c.t.Helper()
	status, text := c.inside(http.MethodPost, procedure, "application/connect+json", bytes.NewReader(enveloped(message)), header...)
	if status != http.StatusOK {
		c.t.Errorf("%s: %d %s", procedure, status, text)
	}
	for len(text) >= 5 {
		n := 5 + int(binary.BigEndian.Uint32([]byte(text[1:5])))
		list = append(list, text[5:n])
		text = text[n:]
	}
	return list
}

// enveloped is a message of a stream.
func enveloped(message string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// newE2B returns a client with a sandbox.
func newE2B(t *testing.T, s *site, g *gatewayProcess, account string) *e2bClient {
	t.Helper()
	c := &e2bClient{t: t, g: g, key: s.e2bKey(account, 3)}
	// What the Python client sends for Sandbox.create().
	status, text := c.ask(http.MethodPost, "/sandboxes", `{"templateID":"base","metadata":{},"timeout":300,"envVars":{},"secure":true,"allow_internet_access":true,"autoPause":false}`)
	if err := json.Unmarshal([]byte(text), c); err != nil || status != http.StatusCreated || c.ID == "" || c.Envd == "" || c.Traffic == "" || c.Envd == c.Traffic {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	return c
}

// The requests of the Python client are answered as it reads them.
func TestE2BPythonRequests(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	c := newE2B(t, s, s.gateway(time.Minute), "acme")
	got := c.stream("/process.Process/Start", `{"process":{"cmd":"/bin/bash","args":["-l","-c","echo $A; exit 2"],"envs":{"A":"1"}},"stdin":false}`, "Keepalive-Ping-Interval", "50", "Connect-Timeout-Ms", "60000")
	if len(got) != 4 || !strings.Contains(got[0], `{"event":{"start":{"pid":`) || got[1] != `{"event":{"data":{"stdout":"MQo="}}}` ||
		got[2] != `{"event":{"end":{"exitCode":2,"exited":true,"status":"exit status 2","error":"exit status 2"}}}` || got[3] != "{}" {
		t.Errorf("%q", got)
	}
	form := "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/home/user/d/f.txt\"\r\nContent-Type: application/octet-stream\r\n\r\ncontent\r\n--b--\r\n"
	for _, q := range []struct {
		method, path, kind, body string
		status                   int
		answer                   string
	}{
		{http.MethodPost, "/files", "multipart/form-data; boundary=b", form, 200, `[{"name":"f.txt","type":"file","path":"/home/user/d/f.txt"}]`},
		{http.MethodGet, "/files?path=d%2Ff.txt&username=user", "", "", 200, "content"},
		{http.MethodGet, "/files?path=none", "", "", 404, `"code":404`},
		{http.MethodGet, "/health", "", "", 204, ""},
		{http.MethodPost, "/filesystem.Filesystem/Stat", "application/json", `{"path":"d/f.txt"}`, 200, `"type":"FILE_TYPE_FILE","path":"/home/user/d/f.txt","size":"7"`},
		{http.MethodPost, "/filesystem.Filesystem/ListDir", "application/json", `{"path":"d","depth":1}`, 200, `{"entries":[{"name":"f.txt"`},
		{http.MethodPost, "/filesystem.Filesystem/MakeDir", "application/json", `{"path":"d"}`, 409, `"code":"already_exists"`},
		{http.MethodPost, "/filesystem.Filesystem/Move", "application/json", `{"source":"d/f.txt","destination":"g"}`, 200, `"path":"/home/user/g"`},
		{http.MethodPost, "/filesystem.Filesystem/Remove", "application/json", `{"path":"g"}`, 200, `{}`},
		{http.MethodPost, "/process.Process/List", "application/json", `{}`, 200, `{"processes":[]}`},
	} {
		if status, text := c.inside(q.method, q.path, q.kind, strings.NewReader(q.body)); status != q.status || !strings.Contains(text, q.answer) {
			t.Errorf("%s %s: %d %s", q.method, q.path, status, text)
		}
	}
	c.watches()
	c.streamsInput()
	if status, text := c.ask(http.MethodDelete, "/sandboxes/"+c.ID, ""); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
}

// watches watches as the Python client does, which asks for changes.
func (c *e2bClient) watches() {
	c.t.Helper()
	status, text := c.call("/filesystem.Filesystem/CreateWatcher", `{"path":"d","recursive":false}`)
	var made struct {
		ID string `json:"watcherId"`
	}
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusOK || made.ID == "" {
		c.t.Errorf("%d %s, %v", status, text, err)
	}
	if status, text := c.inside(http.MethodPost, "/files?path=d%2Fseen", "application/octet-stream", strings.NewReader("x")); status != http.StatusOK {
		c.t.Errorf("%d %s", status, text)
	}
	all := ""
	eventually(c.t, "a change is not seen", func() bool {
		_, text := c.call("/filesystem.Filesystem/GetWatcherEvents", `{"watcherId":"`+made.ID+`"}`)
		all += text
		return strings.Contains(all, `{"name":"seen","type":"EVENT_TYPE_WRITE"}`)
	})
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		if status, text := c.call("/filesystem.Filesystem/RemoveWatcher", `{"watcherId":"`+made.ID+`"}`); status != want {
			c.t.Errorf("%d %s", status, text)
		}
	}
}

// streamsInput starts a process with a tag, and writes to it by that.
func (c *e2bClient) streamsInput() {
	c.t.Helper()
	done := make(chan []string, 1)
	go func() {
		done <- c.stream("/process.Process/Start", `{"process":{"cmd":"/bin/cat","args":[],"envs":{}},"tag":"mine","stdin":true}`)
	}()
	eventually(c.t, "the process is not listed", func() bool {
		_, text := c.call("/process.Process/List", `{}`)
		return strings.Contains(text, `"cmd":"/bin/cat"`) && strings.Contains(text, `"tag":"mine"`)
	})
	body := append(enveloped(`{"start":{"process":{"tag":"mine"}}}`), enveloped(`{"data":{"input":{"stdin":"aGk="}}}`)...)
	if status, text := c.inside(http.MethodPost, "/process.Process/StreamInput", "application/connect+json", bytes.NewReader(append(body, enveloped(`{"keepalive":{}}`)...))); status != http.StatusOK || strings.Contains(text, "error") {
		c.t.Errorf("%d %q", status, text)
	}
	if status, text := c.call("/process.Process/CloseStdin", `{"process":{"tag":"mine"}}`); status != http.StatusOK {
		c.t.Errorf("%d %s", status, text)
	}
	if got := strings.Join(<-done, "\n"); !strings.Contains(got, `"stdout":"aGk="`) || !strings.Contains(got, `"exitCode":0`) {
		c.t.Errorf("%s", got)
	}
}

// What cannot be meant is refused in E2B's words, and makes nothing.
func TestE2BBadRequests(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("e2b.templates", map[string]any{"lost": "no-such-image:1"})
	g := s.gateway(time.Minute)
	c := newE2B(t, s, g, "acme")
	for _, q := range []struct {
		method, path, body string
		status             int
		message            string
	}{
		{"POST", "/v2/sandboxes", `{"templateID":"none"}`, 404, "e2b.templates"},
		{"POST", "/v2/sandboxes", `{"templateID":"code-interpreter-v1"}`, 404, "atoll images build code-interpreter"},
		{"POST", "/v2/sandboxes", `{"templateID":"lost"}`, 404, "e2b.templates"},
		{"POST", "/v2/sandboxes", `{}`, 400, "templateID"},
		{"POST", "/v2/sandboxes", `{`, 400, "JSON"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","moat":1}`, 400, "moat"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","timeout":"x"}`, 400, "timeout"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","timeout":0}`, 400, "timeout"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","timeout":2592001}`, 400, "timeout"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","envVars":{"A=B":"x"}}`, 400, "envVars"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","mcp":{"x":{}}}`, 400, "mcp"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","iam":{"tokens":[]}}`, 400, "iam"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","volumeMounts":[{"name":"a","path":"/a"}]}`, 400, "volumeMounts"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","autoPause":true}`, 400, "autoPauseMemory"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","autoResume":{"enabled":true}}`, 400, "autoResume"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"rules":{"a":[]}}}`, 400, "network.rules"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"egressProxy":{"address":"a"}}}`, 400, "network.egressProxy"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"maskRequestHost":"x"}}`, 400, "network.maskRequestHost"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"allowPublicTraffic":true}}`, 400, "network.allowPublicTraffic"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"allowOut":["a.example"]}}`, 400, "network.denyOut"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"denyOut":["10.0.0.0/8"]}}`, 400, "network.denyOut"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"allowOut":["a b"],"denyOut":["0.0.0.0/0"]}}`, 400, "network.allowOut"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","network":{"allowOut":["a.example"],"denyOut":["0.0.0.0/0"]}}`, 403, "operator"},
		{"POST", "/v2/sandboxes", `{"templateID":"base","metadata":{"a":"` + strings.Repeat("x", 2<<20) + `"}}`, 413, "bytes"},
		{"GET", "/sandboxes/aaaaaaaaaaaaaaaaaaaa", "", 404, "no such sandbox"},
		{"GET", "/v2/sandboxes?limit=0", "", 400, "limit"},
		{"GET", "/v2/sandboxes?state=dead", "", 400, "state"},
		{"GET", "/v2/sandboxes?nextToken=x", "", 400, "nextToken"},
		{"GET", "/v2/sandboxes?startedAfter=x", "", 400, "startedAfter"},
		{"POST", "/sandboxes/{ID}/timeout", `{"timeout":0}`, 400, "timeout"},
		{"POST", "/sandboxes/{ID}/refreshes", `{"duration":-1}`, 400, "timeout"},
		{"POST", "/sandboxes/{ID}/resume", `{}`, 409, "runs already"},
		{"POST", "/sandboxes/{ID}/fork", `{}`, 501, "snapshot"},
		{"PUT", "/sandboxes/{ID}/network", `{}`, 501, "create"},
		{"POST", "/sandboxes/{ID}/snapshots", `{"name":"A B"}`, 400, "name"},
		{"POST", "/sandboxes/{ID}/snapshots", `{"name":"base"}`, 409, "name"},
		{"GET", "/snapshots?sandboxID={ID}", "", 400, "sandboxID"},
		{"POST", "/v3/templates", `{}`, 501, "e2b.templates"},
		{"GET", "/templates/aliases/none", "", 404, "template"},
		{"DELETE", "/templates/none", "", 404, "template"},
		{"GET", "/volumes", "", 501, "volumes"},
		{"POST", "/secrets", "{}", 501, "secrets"},
		{"GET", "/moat", "", 404, "no operation"},
	} {
		status, text := c.ask(q.method, strings.ReplaceAll(q.path, "{ID}", c.ID), q.body)
		var f struct {
			Code    int
			Message string
		}
		if err := json.Unmarshal([]byte(text), &f); err != nil || status != q.status || f.Code != q.status || !strings.Contains(f.Message, q.message) {
			t.Errorf("%s %s %.60s: %d %s, %v", q.method, q.path, q.body, status, text, err)
		}
	}
	c.answersAboutIt()
	if status, text := c.ask(http.MethodDelete, "/sandboxes/"+c.ID, ""); status != http.StatusNoContent {
		t.Errorf("%d %s", status, text)
	}
	s.nothingMade(g)
}

// answersAboutIt tries what the SDK does not use.
func (c *e2bClient) answersAboutIt() {
	c.t.Helper()
	for _, q := range []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"GET", "/templates", "", 200, `"templateID":"base"`},
		{"GET", "/templates/aliases/base", "", 200, `"templateID":"base"`},
		{"GET", "/sandboxes/{ID}/logs", "", 200, `"logs":[]`},
		{"POST", "/sandboxes/{ID}/refreshes", `{"duration":3}`, 204, ""},
		{"GET", "/sandboxes", "", 200, "{ID}"},
		{"GET", "/v2/sandboxes?order=asc&template=base&startedAfter=2020-01-01T00:00:00Z", "", 200, "{ID}"},
		{"GET", "/v2/sandboxes?template=other", "", 200, "[]"},
	} {
		if status, text := c.ask(q.method, strings.ReplaceAll(q.path, "{ID}", c.ID), q.body); status != q.status || !strings.Contains(text, strings.ReplaceAll(q.answer, "{ID}", c.ID)) {
			c.t.Errorf("%s %s: %d %s", q.method, q.path, status, text)
		}
	}
}

// Another account, another token and a client that floods or reads nothing get nowhere, and
// take little.
func TestE2BHostile(t *testing.T) {
	need.Time(t, "it waits for slow clients")
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	c := newE2B(t, s, g, "acme")
	c.refusesOthers(s)
	t.Run("huge envelope", func(t *testing.T) {
		head := []byte{0, 0xff, 0xff, 0xff, 0xff}
		if status, text := c.inside(http.MethodPost, "/process.Process/Start", "application/connect+json", bytes.NewReader(head)); status != http.StatusOK || !strings.Contains(text, "resource_exhausted") {
			t.Errorf("%d %s", status, text)
		}
	})
	t.Run("endless body", func(t *testing.T) {
		endless := io.MultiReader(strings.NewReader(`{"path":"`), neverEnding('x'))
		if status, text := c.inside(http.MethodPost, "/filesystem.Filesystem/Stat", "application/json", endless); status != http.StatusTooManyRequests && status != 0 {
			t.Errorf("%d %s", status, text)
		}
	})
	t.Run("slow reader", func(*testing.T) { c.readsSlowly() })
	t.Run("too many", func(*testing.T) { c.asksTooMuch() })
	eventually(t, "what was left still counts", func() bool {
		status, _ := c.call("/filesystem.Filesystem/Stat", `{"path":"."}`)
		return status == http.StatusOK
	})
}

// neverEnding is a reader of one byte, for ever.
type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// refusesOthers tries to get into a sandbox without its token.
func (c *e2bClient) refusesOthers(s *site) {
	c.t.Helper()
	other := &e2bClient{t: c.t, g: c.g, key: s.e2bKey("other", 0), ID: c.ID}
	for _, q := range []string{
		"GET /sandboxes/{ID}", "DELETE /sandboxes/{ID}", "POST /sandboxes/{ID}/timeout", "POST /sandboxes/{ID}/refreshes", "POST /v2/sandboxes/{ID}/connect", "POST /sandboxes/{ID}/pause",
		"POST /sandboxes/{ID}/resume", "GET /sandboxes/{ID}/metrics", "GET /sandboxes/{ID}/logs", "POST /sandboxes/{ID}/snapshots",
	} {
		method, path, _ := strings.Cut(q, " ")
		if status, text := other.ask(method, strings.ReplaceAll(path, "{ID}", c.ID), `{}`); status != http.StatusNotFound || !strings.Contains(text, `"code":404`) {
			c.t.Errorf("%s of another account: %d %s", q, status, text)
		}
	}
	for _, list := range []string{"/v2/sandboxes", "/snapshots"} {
		if status, text := other.ask(http.MethodGet, list, ""); status != http.StatusOK || text != "[]" {
			c.t.Errorf("%s: %d %s", list, status, text)
		}
	}
	for _, token := range []string{"", c.Envd + "x", c.Traffic, c.key, other.key} {
		other.Envd = token
		for _, path := range []string{"/health", "/files?path=/etc/passwd", "/files?path=/etc/passwd&signature=v1_x"} {
			if status, text := other.inside(http.MethodGet, path, "", nil); status != http.StatusBadGateway {
				c.t.Errorf("%s with %.6q: %d %s", path, token, status, text)
			}
		}
		if status, text := other.call("/process.Process/List", `{}`); status != http.StatusBadGateway {
			c.t.Errorf("%.6q: %d %s", token, status, text)
		}
	}
	for _, key := range []string{"", "e2b_", "e2b_" + strings.Repeat("0", 64), strings.ToUpper(c.key), c.key + "0"} {
		nobody := &e2bClient{t: c.t, g: c.g, key: key}
		if status, text := nobody.ask(http.MethodGet, "/v2/sandboxes", ""); status != http.StatusUnauthorized || !strings.Contains(text, `"code":401`) {
			c.t.Errorf("%.8q: %d %s", key, status, text)
		}
	}
}

// readsSlowly reads nothing of a command that writes without end, which waits.
func (c *e2bClient) readsSlowly() {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.g.address+e2b.Path+"/process.Process/Start", bytes.NewReader(enveloped(`{"process":{"cmd":"/bin/sh","args":["-c","while echo x; do echo x >>n; done"],"envs":{}}}`)))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{"E2b-Sandbox-Id": c.ID, "E2b-Sandbox-Port": "49983", "X-Access-Token": c.Envd, "Content-Type": "application/connect+json"} {
		r.Header.Set(name, value)
	}
	answer, err := askRoutes.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	size := func() string {
		_, text := c.call("/filesystem.Filesystem/Stat", `{"path":"n"}`)
		return text
	}
	last := ""
	eventually(c.t, "the command does not wait for its reader", func() bool {
		before := last
		last = size()
		time.Sleep(100 * time.Millisecond)
		return strings.Contains(last, "size") && before == last
	})
}

// asksTooMuch opens more requests to a sandbox than it may: their bodies do not come.
func (c *e2bClient) asksTooMuch() {
	c.t.Helper()
	refused := make(chan string, 100)
	for range 70 {
		conn, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", c.g.address)
		if err != nil {
			c.t.Fatal(err)
		}
		defer conn.Close() //nolint:revive // all stay open until the end
		fmt.Fprintf(conn, "POST %s/filesystem.Filesystem/Stat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 12\r\nE2b-Sandbox-Id: %s\r\nE2b-Sandbox-Port: 49983\r\nX-Access-Token: %s\r\n\r\n", e2b.Path, c.ID, c.Envd)
		go func() {
			line, _ := bufio.NewReader(conn).ReadString('\n') // "" at the end
			refused <- line
		}()
	}
	select {
	case line := <-refused:
		if !strings.Contains(line, " 429 ") {
			c.t.Errorf("%q", line)
		}
	case <-time.After(patience):
		c.t.Error("no request was refused")
	}
}
