package app_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/client"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/doctor"
	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	sessions "github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// open is what a process does that is a gateway: it says where it listens, and
// serves until it is told to end.
func (o *order) open(ctx context.Context, a *app.App) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	g, err := serve.Open(ctx, a.Parts(), serve.Options{Listen: []string{cmp.Or(o.Listen, "127.0.0.1:0")}, Grace: time.Duration(o.Grace)})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, g.Addresses()[0])
	return g.Serve(ctx)
}

// gatewayProcess is a gateway in a process of its own.
type gatewayProcess struct {
	*client.Client
	address string
	signal  func(syscall.Signal)
	ended   func() error // waits for its end
}

// gateway starts one.
func (s *site) gateway(grace time.Duration) *gatewayProcess { return s.gatewayAt("", grace) }

// gatewayAt starts one at an address; "" chooses a port.
func (s *site) gatewayAt(address string, grace time.Duration) *gatewayProcess {
	s.t.Helper()
	cmd := s.process(order{Gateway: true, Listen: address, Grace: int64(grace)})
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var problems strings.Builder
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := sync.OnceValue(cmd.Wait)
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = ended() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = ended()
		s.t.Fatalf("the gateway did not start: %v\n%s", err, problems.String())
	}
	c, err := client.New(client.Options{Socket: filepath.Join(s.state, serve.Socket)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return &gatewayProcess{Client: c, address: strings.TrimSpace(line), ended: ended, signal: func(n syscall.Signal) { _ = cmd.Process.Signal(n) }}
}

// status asks over TCP; it is 0 if nobody takes the connection.
func (g *gatewayProcess) status(t *testing.T, path string) int {
	t.Helper()
	plain := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := plain.Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// valve stands before a model: requests pass, wait, or find nobody.
type valve struct {
	held, away atomic.Bool
	waiting    atomic.Int32
	release    chan struct{}
}

// withValve puts one before the site's models.
func withValve(s *site, upstream string) *valve {
	s.t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		s.t.Fatal(err)
	}
	v := &valve{release: make(chan struct{})}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, ErrorLog: log.New(io.Discard, "", 0)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v.away.Load() {
			panic(http.ErrAbortHandler)
		}
		if v.held.Load() && r.Method == http.MethodPost {
			v.waiting.Add(1)
			select {
			case <-v.release:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	s.t.Cleanup(server.Close)
	s.set("llm.providers.litellm.url", server.URL)
	return v
}

// tasks are those of a session, by id, as they are written down.
func (s *site) tasks(v sessions.View, key string) map[string]*sessions.Record {
	s.t.Helper()
	a := s.open()
	book := sessions.New(serve.SessionOptions(a.Parts(), nil))
	defer book.Close()
	list, err := book.Tasks(s.t.Context(), v, key, 1000)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		s.t.Fatal(err)
	}
	all := map[string]*sessions.Record{}
	for _, rec := range list {
		all[rec.ID] = rec
	}
	return all
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// A gateway that is killed while tasks run and wait loses none: those that ran
// are over, and say why; those that waited are carried out by the next.
func TestGatewayKilledUnderLoad(t *testing.T) {
	t.Parallel()
	s, upstream := gatewaySite(t)
	v := withValve(s, upstream.URL())
	v.held.Store(true)
	first := s.gateway(time.Minute)
	const lanes, deep = 3, 3
	var all sync.WaitGroup
	for i := range lanes * deep {
		all.Go(func() { // it is cut off; what counts is what was written down
			_, _ = first.Send(t.Context(), fmt.Sprintf("agent:main:ann:r%d", i%lanes), &api.SendRequest{Message: "x", Account: "ann"}, fmt.Sprintf("task-%d", i))
		})
	}
	accepted := func() (n int) {
		for i := range lanes {
			n += len(s.tasks(ann, fmt.Sprintf("agent:main:ann:r%d", i)))
		}
		return n
	}
	eventually(t, "not everything was accepted", func() bool { return accepted() == lanes*deep && v.waiting.Load() >= lanes })
	first.signal(syscall.SIGKILL)
	_ = first.ended()
	all.Wait()
	v.held.Store(false)
	close(v.release)

	s.gateway(time.Minute)
	states := map[sessions.State]int{}
	eventually(t, "tasks are not over", func() bool {
		clear(states)
		for i := range lanes {
			for _, rec := range s.tasks(ann, fmt.Sprintf("agent:main:ann:r%d", i)) {
				states[rec.State]++
			}
		}
		return states[sessions.Done]+states[sessions.Failed]+states[sessions.Aborted] == lanes*deep
	})
	if states[sessions.Done] != lanes*(deep-1) || states[sessions.Failed] != lanes {
		t.Errorf("%v", states)
	}
	if n, err := s.open().GatewayStarts(t.Context()); n != 2 || err != nil {
		t.Errorf("the second gateway is number %d, %v", n, err)
	}
}

// A gateway that is told to end finishes what it does, takes nothing new, and
// ends what does not finish in time.
func TestGatewayDrains(t *testing.T) {
	t.Parallel()
	s, upstream := gatewaySite(t)
	v := withValve(s, upstream.URL())
	v.held.Store(true)
	g := s.gateway(time.Minute)
	type answer struct {
		task *api.Task
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		task, err := g.Send(t.Context(), "agent:main:ann:r", &api.SendRequest{Message: "x", Account: "ann"}, "one")
		answers <- answer{task, err}
	}()
	eventually(t, "the task did not begin", func() bool { return v.waiting.Load() > 0 })
	g.signal(syscall.SIGTERM)
	eventually(t, "it still takes connections", func() bool { return g.status(t, "/health") == 0 })
	close(v.release)
	if a := <-answers; a.err != nil || a.task.State != "done" {
		t.Errorf("%+v, %v", a.task, a.err)
	}
	if err := g.ended(); err != nil {
		t.Error(err)
	}

	v.release = make(chan struct{})
	t.Cleanup(func() { close(v.release) })
	v.waiting.Store(0)
	g = s.gateway(time.Second)
	go func() {
		_, _ = g.Send(t.Context(), "agent:main:ann:r", &api.SendRequest{Message: "x", Account: "ann"}, "two")
	}()
	eventually(t, "the task did not begin", func() bool { return v.waiting.Load() > 0 })
	g.signal(syscall.SIGTERM)
	if err := g.ended(); err != nil {
		t.Error(err)
	}
	var problems []string
	for _, rec := range s.tasks(ann, "agent:main:ann:r") {
		if rec.State.Over() && rec.Problem != "" {
			problems = append(problems, rec.Problem)
		}
	}
	if len(problems) != 1 {
		t.Errorf("%q", problems)
	}
}

// While nobody answers for a model, tasks fail and say so; the gateway stays up,
// and the next task after that works.
func TestGatewayModelAway(t *testing.T) {
	t.Parallel()
	s, upstream := gatewaySite(t)
	v := withValve(s, upstream.URL())
	g := s.gateway(time.Minute)
	v.away.Store(true)
	task, err := g.Send(t.Context(), "agent:main:ann:r", &api.SendRequest{Message: "x", Account: "ann", Timeout: 5}, "one")
	if err != nil || task.State != "failed" || task.Error == nil {
		t.Errorf("%+v, %v", task, err)
	}
	if health, err := g.Health(t.Context()); err != nil || !health.OK {
		t.Errorf("%+v, %v", health, err)
	}
	v.away.Store(false)
	eventually(t, "the model is back, and tasks fail", func() bool {
		task, err := g.Send(t.Context(), "agent:main:ann:r", &api.SendRequest{Message: "x", Account: "ann"}, fmt.Sprint("again-", time.Now().UnixNano()))
		return err == nil && task.State == "done"
	})
}

// A full disk makes the gateway not ready; nothing is accepted that could be lost,
// and all goes on when there is room again.
func TestGatewayDiskFull(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.smallState("320m")
	g := s.gateway(time.Minute)
	if task, err := g.Send(t.Context(), "agent:main:ann:r", &api.SendRequest{Message: "x", Account: "ann"}, "before"); err != nil || task.State != "done" {
		t.Fatalf("%+v, %v", task, err)
	}
	filler := filepath.Join(s.state, "filler")
	fill(t, filler)
	ready := func() int { return g.status(t, "/ready") }
	eventually(t, "a full disk, and ready", func() bool { return ready() == http.StatusServiceUnavailable })
	refused := map[string]int{}
	eventually(t, "a full disk, and messages are taken", func() bool { // the database has some space in its log
		key := fmt.Sprint("full", len(refused))
		task, err := g.Submit(t.Context(), "agent:main:ann:r", &api.SendRequest{Message: strings.Repeat("x", 100<<10), Account: "ann"}, key)
		refused[key] = 0
		if p, ok := errors.AsType[*api.Problem](err); ok {
			refused[key] = p.Status
		} else if err != nil || task.State == "done" {
			t.Errorf("%s: %+v, %v", key, task, err)
		}
		return refused[key] == http.StatusInsufficientStorage
	})
	for key, status := range refused {
		if status != 0 && status != http.StatusInsufficientStorage {
			t.Errorf("%s: %d, want 507", key, status)
		}
	}
	if checks := s.open().Doctor().Examine(t.Context()); !slices.ContainsFunc(checks, func(c doctor.Check) bool { return c.Name == "disk" && c.Status == doctor.CheckFailed }) {
		t.Errorf("doctor finds nothing: %+v", checks)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, "room again, and not ready", func() bool { return ready() == http.StatusOK })
	task, err := g.Send(t.Context(), "agent:main:ann:r", &api.SendRequest{Message: "x", Account: "ann"}, "after")
	if err != nil || task.State != "done" {
		t.Errorf("%+v, %v", task, err)
	}
}

// smallState puts the state directory on a file system of its own.
func (s *site) smallState(size string) {
	s.t.Helper()
	need.Root(s.t, "it mounts a file system")
	s.mkdir(s.state)
	if err := unix.Mount("tmpfs", s.state, "tmpfs", 0, "size="+size+",mode=0700"); err != nil {
		s.t.Fatalf("mount a tmpfs: %v", err)
	}
	s.t.Cleanup(func() {
		s.removeAll()
		if err := unix.Unmount(s.state, unix.MNT_DETACH); err != nil {
			s.t.Error(err)
		}
	})
}

// fill leaves no room on a file's disk.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<16); err == nil; _, err = f.Write(block) {
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// The password of an openclaw.json lets in where its mode says so, and its token does not.
func TestGatewayPassword(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	s.set("gateway.auth", map[string]any{"mode": "password", "token": "a token that does not count", "password": "open sesame"})
	g := s.gateway(time.Minute)
	for shown, want := range map[string]int{"open sesame": http.StatusOK, "a token that does not count": http.StatusUnauthorized, "open": http.StatusUnauthorized} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.address+"/api/v1/ai/agents", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+shown)
		answer, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%q: %d, want %d", shown, answer.StatusCode, want)
		}
	}
}

// A revoked token's connection ends within a second or so, and opens nothing more.
func TestGatewayRevokedConnection(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t)
	g := s.gateway(time.Minute)
	desk := serve.Tokens(s.open().Installation)
	text, made, err := desk.Create(t.Context(), access.Spec{Scope: access.Run, Account: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	dial := func() (*protocol.Client, error) {
		c := protocol.NewClient(protocol.ClientOptions{URL: "ws://" + g.address, Scopes: []string{"operator.read"}, Token: func(context.Context) (string, error) { return text.Reveal(), nil }})
		t.Cleanup(c.Close)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		return c, c.Call(ctx, "health", nil, nil)
	}
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection is not in the audit log", func() bool {
		records, err := audit.Tail(service.AuditDir(s.open().Settings), 10, func(json string) bool {
			return strings.Contains(json, `"kind":"login"`) && strings.Contains(json, made.ID) && strings.Contains(json, `"account":"ann"`)
		})
		return err == nil && len(records) == 1
	})
	if err := desk.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a revoked token is still good", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		return c.Call(ctx, "health", nil, nil) != nil
	})
	if _, err := dial(); err == nil {
		t.Error("it opened a new connection")
	}
}

// The host's own programs are for one account. With tokens of two the first goes on
// as before, and the other has sandboxes of an image that needs no engine.
func TestGatewayOfSeveralAccounts(t *testing.T) {
	t.Parallel()
	s, _ := gatewaySite(t, fakellm.Use("exec", `{"command": "true"}`), fakellm.Say("done"))
	g := s.gateway(time.Minute)
	desk := serve.Tokens(s.open().Installation)
	use := func(key string) *api.Task {
		task, err := g.Send(t.Context(), "agent:main:ann:"+key, &api.SendRequest{Message: "x", Account: "ann"}, key)
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	if task := use("alone"); task.State != "done" {
		t.Fatalf("%+v", task)
	}
	for _, account := range []string{"ann", "bob"} {
		if _, _, err := desk.Create(t.Context(), access.Spec{Scope: access.Run, Account: account}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(1100 * time.Millisecond) // the answer to how many there are holds for a second
	if task := use("among-others"); task.State != "done" || task.Report.Image != provide.HostImage {
		t.Errorf("the first account: %+v %+v %+v", task, task.Error, task.Report)
	}
	task, err := g.Send(t.Context(), "agent:main:bob:r", &api.SendRequest{Message: "x", Account: "bob"}, "bobs")
	if err != nil || task.State != "done" || !strings.HasPrefix(task.Report.Image, "atoll-packages:") {
		t.Errorf("the second account: %+v, %v", task, err)
	}
	list, err := g.Sandboxes(t.Context(), api.SandboxQuery{Account: "bob"})
	if err != nil || len(list.Sandboxes) != 1 || !list.Sandboxes[0].ImageMatch {
		t.Errorf("%+v, %v", list, err)
	}
}
