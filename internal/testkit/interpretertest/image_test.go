package interpretertest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image/png"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/gateway/sandboxes"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// openApp opens an installation whose sandboxes need no engine. prepare gets its state
// directory before.
func openApp(t *testing.T, prepare func(t *testing.T, state string)) (_ *app.App, state string) {
	t.Helper()
	if err := os.MkdirAll(cacheRoot(), 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cacheRoot(), "t-") //nolint:usetesting // beside the kept images, for hard links
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	state = filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(t, state)
	file := filepath.Join(dir, "atoll.json5")
	if err := os.WriteFile(file, []byte(`{agents: {defaults: {sandbox: {mode: "all", backend: "linux"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ATOLL_STATE_DIR": state, "HOME": dir, "DOCKER_HOST": "unix:///nowhere", "CONTAINER_HOST": "unix:///nowhere"}
	a, err := app.Open(t.Context(), provide.LoadOptions{Getenv: func(name string) string { return env[name] }, ConfigPath: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, state
}

// build makes the image without an engine, unless the kept one is up to date.
func build(t *testing.T, a *app.App, state string) {
	t.Helper()
	recipe, err := image.Find("code-interpreter")
	if err != nil {
		t.Fatal(err)
	}
	builder, err := a.ImageBuilder(func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	made, err := builder.Recipe(t.Context(), recipe, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if made.Built {
		keep(t, state)
	}
}

// interpreter is a sandbox of the image, made as the gateway makes it.
type interpreter struct {
	t      *testing.T
	inside *sandboxes.Inside
	client http.Client
}

func openService(t *testing.T, a *app.App) *sandboxes.Service {
	t.Helper()
	service, err := sandboxes.Open(t.Context(), sandboxes.Options{In: a.Installation, Audit: func(*audit.ExecEvent) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	return service
}

// create makes a sandbox, which is removed with the test.
func create(t *testing.T, service *sandboxes.Service, ref string) *sandboxes.Record {
	t.Helper()
	r, err := service.Create(t.Context(), &sandboxes.Request{CreateSandbox: &api.CreateSandbox{Image: ref, TimeoutSeconds: 600}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Remove(context.WithoutCancel(t.Context()), r); err != nil {
			t.Error(err)
		}
	})
	return r
}

func start(t *testing.T, service *sandboxes.Service) *interpreter {
	t.Helper()
	r := create(t, service, "code-interpreter")
	began := time.Now()
	for range 2 { // the second time it runs already
		if err := service.StartProgram(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ready after %v", time.Since(began))
	inside, err := service.Enter(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inside.Leave)
	if all, err := inside.Processes(); err != nil || len(all) != 1 {
		t.Errorf("%+v %v", all, err)
	}
	i := &interpreter{t: t, inside: inside}
	i.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return inside.Machine.Dial(ctx, "tcp", 49999)
	}}
	t.Cleanup(i.client.CloseIdleConnections)
	return i
}

// event is a line of an execution.
type event struct {
	Type, Text, HTML, PNG  string
	Name, Value, Traceback string
	Main                   bool `json:"is_main_result"`
}

func (i *interpreter) request(ctx context.Context, method, path string, body any) *http.Response {
	i.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		i.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://sandbox"+path, bytes.NewReader(text))
	if err != nil {
		i.t.Fatal(err)
	}
	answer, err := i.client.Do(request)
	if err != nil {
		i.t.Fatal(err)
	}
	return answer
}

// context makes a context and returns its id.
func (i *interpreter) context() string {
	i.t.Helper()
	answer := i.request(i.t.Context(), http.MethodPost, "/contexts", nil)
	defer answer.Body.Close()
	var made struct{ ID string }
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil || made.ID == "" {
		i.t.Fatalf("%+v %v", made, err)
	}
	return made.ID
}

// run executes code in a context, "" for the usual one.
func (i *interpreter) run(in, code string) (events []event) {
	i.t.Helper()
	body := map[string]any{"code": code}
	if in != "" {
		body["context_id"] = in
	}
	answer := i.request(i.t.Context(), http.MethodPost, "/execute", body)
	defer answer.Body.Close()
	for lines := json.NewDecoder(answer.Body); ; {
		var e event
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			i.t.Fatalf("%s: %v", code, err)
		}
		events = append(events, e)
	}
	if n := len(events); n == 0 || events[n-1].Type != "end_of_execution" {
		i.t.Fatalf("%s: %+v", code, events)
	}
	return events
}

// text returns what code wrote and the text of its result, or its error.
func (i *interpreter) text(in, code string) (text string) {
	i.t.Helper()
	for _, e := range i.run(in, code) {
		text += e.Text + e.Name
	}
	return text
}

// want fails unless code has a text.
func (i *interpreter) want(in, code, text string) {
	i.t.Helper()
	if got := i.text(in, code); got != text {
		i.t.Errorf("%s: %.300q, want %q", code, got, text)
	}
}

// The image that is built without an engine has an interpreter with all that its clients
// ask of it.
func TestImage(t *testing.T) {
	t.Parallel()
	need.Root(t, "builds in the directory that keeps the image")
	need.Program(t, "apt-get", "apt")
	need.Time(t, "fetches packages of Debian")
	a, state := openApp(t, take)
	build(t, a, state)
	t.Run("server", func(t *testing.T) {
		i := start(t, openService(t, a))
		i.results()
		i.contexts()
		i.failures()
	})
	t.Run("sdk", func(t *testing.T) { useSDK(t, a) })
}

// results are those of code that ends well.
func (i *interpreter) results() {
	i.want("", "print(1)\n'a' * 3", "1\naaa")
	i.want("", "x = 5; x + 1", "6")
	i.want("", "import os; os.environ['MPLBACKEND'].split('.')[-1]", "backend_inline")
	var kinds []string
	for _, e := range i.run("", "import sys\nfor n in range(3): print(n, flush=True); print(n, file=sys.stderr, flush=True)") {
		kinds = append(kinds, e.Type+e.Text)
	}
	if want := []string{"number_of_executions", "stdout0\n", "stderr0\n", "stdout1\n", "stderr1\n", "stdout2\n", "stderr2\n", "end_of_execution"}; !slices.Equal(kinds, want) {
		i.t.Errorf("%q", kinds)
	}
	i.figure()
	if events := i.run("", "import pandas; pandas.DataFrame({'a': [1, 2]})"); !strings.Contains(events[1].HTML, "<table") || !events[1].Main || events[1].Text == "" {
		i.t.Errorf("%+v", events)
	}
	if got := i.text("", "for n in range(20000): print('x' * 999)"); len(got) != 20_000_000 {
		i.t.Errorf("%d bytes of 20,000,000", len(got))
	}
}

// figure is a plot that nothing shows: the end of the execution does.
func (i *interpreter) figure() {
	events := i.run("", "import matplotlib.pyplot as plt\nplt.figure(figsize=(3, 2), dpi=100)\n_ = plt.plot([1, 2, 4])")
	at := slices.IndexFunc(events, func(e event) bool { return e.PNG != "" })
	if at < 0 {
		i.t.Fatalf("%+v", events)
	}
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(events[at].PNG, "\n", ""))
	if err != nil || !bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")) || len(data) < 1000 {
		i.t.Fatalf("%d bytes, %v", len(data), err)
	}
	if size, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || size.Width < 150 || size.Width > 400 || events[at].Main {
		i.t.Errorf("%+v %v", size, err)
	}
}

// contexts do not share variables, and lose them when they are restarted.
func (i *interpreter) contexts() {
	other := i.context()
	i.want(other, "x", "NameError")
	i.want(other, "x = 7", "")
	i.want("", "x", "5")
	i.want(other, "x", "7")
	if answer := i.request(i.t.Context(), http.MethodPost, "/contexts/"+other+"/restart", nil); answer.StatusCode != http.StatusNoContent {
		i.t.Error(answer.Status)
	}
	i.want(other, "x", "NameError")
	if answer := i.request(i.t.Context(), http.MethodDelete, "/contexts/"+other, nil); answer.StatusCode != http.StatusNoContent {
		i.t.Error(answer.Status)
	}
	answer := i.request(i.t.Context(), http.MethodPost, "/execute", map[string]string{"code": "1", "context_id": other})
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		i.t.Error(answer.Status)
	}
}

// failures are errors of code, a client that goes away, and a kernel that dies.
func (i *interpreter) failures() {
	if events := i.run("", "1/0"); events[1].Name != "ZeroDivisionError" || events[1].Value != "division by zero" || !strings.Contains(events[1].Traceback, "Traceback (most recent call last)") {
		i.t.Errorf("%+v", events)
	}
	ctx, cancel := context.WithCancel(i.t.Context())
	answer := i.request(ctx, http.MethodPost, "/execute", map[string]string{"code": "import time\ntry: print('begun', flush=True); time.sleep(600)\nexcept KeyboardInterrupt: left = 1"})
	for lines := bufio.NewScanner(answer.Body); lines.Scan() && !strings.Contains(lines.Text(), "begun"); {
	}
	cancel()
	_ = answer.Body.Close()
	i.want("", "left", "1")
	i.want("", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "KernelDied")
	i.want("", "x", "NameError")
}
