package browsertest_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image/jpeg"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// sailor is a model that books a berth: it finds refs in what it was told last, as a model
// would.
type sailor struct {
	mu       sync.Mutex
	requests []*fakellm.Request
	problems []string
}

// step is what the model does when its last result has a text.
type step struct {
	sees string
	do   func(last string) fakellm.Turn
}

func use(format string, args ...any) fakellm.Turn {
	return fakellm.Use("browser", fmt.Sprintf(format, args...))
}

// sailorSteps are tried in order: the first that fits what was told last is done.
var sailorSteps = []step{
	{"HB-2042,Petrel,3", func(string) fakellm.Turn { return fakellm.Say("Berth 42 is booked: HB-2042.") }},
	{"_HB-2042.csv", func(last string) fakellm.Turn {
		return fakellm.Use("exec", fmt.Sprintf(`{"command":"cat %s"}`, regexp.MustCompile(`media/inbound/\S+`).FindString(last)))
	}},
	{"0 downloads", func(string) fakellm.Turn { return use(`{"action":"downloads"}`) }},
	{`link "Receipt" [focused]`, func(string) fakellm.Turn { return use(`{"action":"downloads"}`) }},
	{`link "Receipt"`, func(last string) fakellm.Turn { return use(`{"action":"click","ref":%q}`, ref(last, `link "Receipt"`)) }},
	{"a picture of", func(string) fakellm.Turn { return use(`{"action":"snapshot","interactive":true}`) }},
	{"[checked", func(last string) fakellm.Turn {
		if strings.Contains(last, `button "Send"`) {
			return use(`{"action":"click","ref":%q}`, ref(last, `button "Send"`))
		}
		return use(`{"action":"screenshot","labels":true}`)
	}},
	{`checkbox "I follow`, func(last string) fakellm.Turn {
		turn := use(`{"action":"fill","fields":[{"ref":%q,"text":"2027-05-01"},{"ref":%q,"text":"3"}]}`, ref(last, `textbox "From"`), ref(last, `textbox "Nights"`))
		turn.Calls = append(turn.Calls, use(`{"action":"act","request":{"kind":"click","ref":%q}}`, ref(last, `checkbox "I follow`)).Calls...)
		return turn
	}},
	{`heading "Your boat"`, func(last string) fakellm.Turn {
		turn := use(`{"action":"fill","fields":[{"ref":%q,"text":"Petrel"},{"ref":%q,"text":"9"}]}`, ref(last, `textbox "Name"`), ref(last, `textbox "Length`))
		turn.Calls = append(turn.Calls, use(`{"action":"click","ref":%q}`, ref(last, `button "Next"`)).Calls...)
		return turn
	}},
	{`heading "Security check"`, func(string) fakellm.Turn {
		return use(`{"action":"handover","reason":"Type the code that was sent to your phone."}`)
	}},
	{`heading "Log in"`, func(last string) fakellm.Turn {
		return use(`{"action":"fill","submit":true,"fields":[{"ref":%q,"text":"ann"},{"ref":%q,"text":"sail"}]}`, ref(last, `textbox "User"`), ref(last, `textbox "Password"`))
	}},
	{"Book a berth", func(string) fakellm.Turn { return use(`{"action":"open","url":"http://harbour.example/"}`) }},
}

// ref finds the ref of a line that begins with a text; "" if there is none.
func ref(text, begin string) string {
	found := regexp.MustCompile(`- ` + regexp.QuoteMeta(begin) + `.*?\[ref=(e\d+)\]`).FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	return found[1]
}

func (m *sailor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := fakellm.Read(w, r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, request)
	last := request.Last()
	for _, s := range sailorSteps {
		if strings.Contains(last, s.sees) {
			turn := s.do(last)
			for i := range turn.Calls {
				turn.Calls[i].ID = fmt.Sprintf("call_%d_%d", len(m.requests), i)
			}
			request.Answer(w, turn)
			return
		}
	}
	m.problems = append(m.problems, last)
	request.Answer(w, fakellm.Say("I do not know what to do."))
}

// last returns what the model was told last.
func (m *sailor) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return ""
	}
	return m.requests[len(m.requests)-1].Last()
}

// pictures returns the pictures that the model was shown.
func (m *sailor) pictures(t *testing.T) (list [][]byte) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.requests[len(m.requests)-1].Body
	for _, found := range regexp.MustCompile(`"media_type":"image/jpeg","data":"([^"]+)"`).FindAllSubmatch(last, -1) {
		data, err := base64.StdEncoding.DecodeString(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, data)
	}
	return list
}

// has reports whether the model was ever told a text.
func (m *sailor) has(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if bytes.Contains(r.Body, []byte(text)) {
			return true
		}
	}
	return false
}

// TestBrowserTask: an agent of the gateway logs in at a site, hands the check over to a
// person, who uses a web browser of their own, fills a form of two pages and downloads a
// file. With ATOLL_PICTURES=DIR pictures of it are written there.
func TestBrowserTask(t *testing.T) {
	need.Time(t, "it runs two browsers and packages of npm")
	need.Program(t, "chromium-headless-shell", "chromium-headless-shell")
	installed := modules(t)
	web, model := &harbour{form: url.Values{}}, &sailor{}
	s := newTaskSite(t, web, model)
	c, err := client.New(client.Options{URL: "http://" + s.address, Token: s.tokens["operator"]})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	person := s.person(ctx, t, installed, cancel)
	task, err := c.Send(ctx, "agent:main:berth", &api.SendRequest{Message: "Book a berth for Petrel at harbour.example, three nights from 2027-05-01, and give me the receipt."}, "")
	if err != nil {
		cancel()
		person()
		t.Fatalf("%v; the model was told last: %s", err, model.last())
	}
	if task.State != "done" || !strings.Contains(task.Text, "HB-2042") {
		t.Fatalf("%s: %+v\nthe model does not know: %q", task.Text, task.Error, model.problems)
	}
	person()
	if web.got("boat") != "Petrel" || web.got("nights") != "3" || web.got("code") != harbourCode {
		t.Errorf("the site has %v", web.form)
	}
	if model.has(harbourCode) {
		t.Error("the model was told what the person typed")
	}
	shown := model.pictures(t)
	if len(shown) != 1 {
		t.Fatalf("the model was shown %d pictures", len(shown))
	}
	if size, err := jpeg.DecodeConfig(bytes.NewReader(shown[0])); err != nil || size.Width != 1280 {
		t.Errorf("%+v, %v", size, err)
	}
	keepPicture(t, "browser-agent.jpg", shown[0])
}

// keepPicture writes a picture where ATOLL_PICTURES says.
func keepPicture(t *testing.T, name string, data []byte) {
	t.Helper()
	if dir := os.Getenv("ATOLL_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Error(err)
		}
	}
}

// newTaskSite is a gateway whose agent has a browser and is driven by the model.
func newTaskSite(t *testing.T, web, model http.Handler) *site {
	t.Helper()
	net, err := internettest.Start(web)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = net.Close() })
	upstream := httptest.NewServer(model)
	t.Cleanup(upstream.Close)
	s := &site{tokens: map[string]string{}}
	s.makeDir(t)
	s.openWith(t, fmt.Sprintf(`{llm: {providers: {tests: {kind: "anthropic", url: %q, keys: [{env: "MODEL_KEY"}], models: ["sailor"]}}, unpriced: "count"},
		tools: {sandbox: {tools: {alsoAllow: ["browser"]}}},
		agents: {defaults: {workspace: %q, model: "tests/sailor", sandbox: {mode: "all", scope: "session", backend: "linux", docker: {image: "host"}, browser: {enabled: true},
		egress: {mode: "enforce", allow: ["harbour.example:80"], upstream: %q}}}}}`, upstream.URL, filepath.Join(s.dir, "agent"), net.Proxy))
	s.serve(t)
	s.makeTokens(t)
	return s
}

// person starts the person, who waits for a question. The returned function waits until
// they are done; fail is called if they cannot go on.
func (s *site) person(ctx context.Context, t *testing.T, installed string, fail func()) func() {
	t.Helper()
	dir := t.TempDir()
	program, err := os.ReadFile("testdata/person.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "person.mjs"), program, 0o600)
	}
	if err == nil {
		err = os.Symlink(installed, filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(installed, ".bin", "node"), "person.mjs")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GATEWAY=http://" + s.address, "TOKEN=" + s.tokens["operator"], "CODE=" + harbourCode,
		"CHROMIUM=/usr/lib/chromium/chromium-headless-shell", "PICTURES=" + os.Getenv("ATOLL_PICTURES")}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err != nil {
			fail()
		}
		done <- err
	}()
	return func() {
		if err := <-done; err != nil {
			t.Errorf("the person: %v\n%s", err, said.String())
		}
	}
}
