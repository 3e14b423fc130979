package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// removeAtEnd removes a sandbox when the test is over.
func removeAtEnd(t *testing.T, i sandbox.Instance) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := i.Remove(ctx); err != nil {
			t.Error(err)
		}
	})
}

// podsOf are the names of the pods of an installation.
func podsOf(t *testing.T, r *Runtime) (names []string) {
	t.Helper()
	c, err := r.cluster()
	if err != nil {
		t.Fatal(err)
	}
	found, err := list[corev1.Pod](t.Context(), c, pods, metav1.ListOptions{LabelSelector: r.selectAll()})
	if err != nil {
		t.Fatal(err)
	}
	for n := range found {
		names = append(names, found[n].Name)
	}
	return names
}

// TestTwoClaimOneName: of two gateways that make a sandbox of one name at once, one does and
// the other is told so; there is never a second pod.
func TestTwoClaimOneName(t *testing.T) {
	s := clusterSettings(t)
	s.NodeSelector = map[string]string{"atoll.dev/none": "true"} // a pod that no node takes is gone at once
	seen := &creations{names: map[string]int{}}
	gateways := [2]*Runtime{testRuntime(t, s), testRuntime(t, s)}
	for _, g := range gateways {
		seen.watch(t, g)
	}
	rounds, slots := need.Rounds(20, 200), make(chan struct{}, 10)
	var all sync.WaitGroup
	for n := range rounds {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			seen.claimTwice(t, gateways, fmt.Sprintf("round-%d", n))
		})
	}
	all.Wait()
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if len(seen.names) != rounds {
		t.Errorf("%d names got a pod in %d rounds", len(seen.names), rounds)
	}
	for name, made := range seen.names {
		if made != 1 {
			t.Errorf("%d pods were made for one name, %s", made, name)
		}
	}
	if left, err := gateways[0].List(t.Context()); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// claimTwice makes a sandbox by two gateways at once, and gives up when there is a pod and one was refused.
func (c *creations) claimTwice(t *testing.T, gateways [2]*Runtime, name string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var exists atomic.Int64
	go func() {
		for (c.of(gateways[0].labels(name)[labelSandbox]) == 0 || exists.Load() == 0) && pause(ctx, pollInterval) == nil {
		}
		cancel()
	}()
	var both sync.WaitGroup
	for _, g := range gateways {
		both.Go(func() {
			_, err := g.Create(ctx, smallSpec(name))
			switch {
			case errors.Is(err, sandbox.ErrExists):
				exists.Add(1)
			case err == nil:
				t.Errorf("%s: a pod runs that no node takes", name)
			}
		})
	}
	both.Wait()
	if exists.Load() != 1 {
		t.Errorf("%s: %d gateways were told that it exists", name, exists.Load())
	}
}

// creations counts the pods that runtimes ask for, by the label of their sandboxes.
type creations struct {
	mu    sync.Mutex
	names map[string]int
}

func (c *creations) of(label string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.names[label]
}

// watch counts those of a runtime.
func (c *creations) watch(t *testing.T, r *Runtime) {
	t.Helper()
	through(t, r, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodPost || !strings.HasSuffix(request.URL.Path, "/pods") {
			return next.RoundTrip(request)
		}
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return nil, err
		}
		answer, err := next.RoundTrip(request)
		if err == nil && answer.StatusCode < 300 {
			_, after, _ := strings.Cut(string(text), labelSandbox+`":"`)
			label, _, _ := strings.Cut(after, `"`)
			c.mu.Lock()
			c.names[label]++
			c.mu.Unlock()
		}
		return answer, err
	})
}

// through has every request of a runtime go through a function.
func through(t *testing.T, r *Runtime, do func(http.RoundTripper, *http.Request) (*http.Response, error)) {
	t.Helper()
	known, err := connect(&r.settings)
	if err != nil {
		t.Fatal(err)
	}
	known.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return do(next, request) })
	})
	if r.known, err = reconnect(known); err != nil {
		t.Fatal(err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWatchesEnd: watches that are cut, refused or too old do not keep a sandbox from being
// made, for what is decided is read.
func TestWatchesEnd(t *testing.T) {
	const gone = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}` + "\n"
	for name, answer := range map[string]func() *http.Response{
		"cut": func() *http.Response {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(""))}
		},
		"too old": func() *http.Response {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(gone))}
		},
		"silent": func() *http.Response { r, _ := io.Pipe(); return &http.Response{StatusCode: 200, Body: r} },
	} {
		t.Run(name, func(t *testing.T) {
			r, watches := testRuntime(t, clusterSettings(t)), atomic.Int64{}
			through(t, r, func(next http.RoundTripper, request *http.Request) (*http.Response, error) {
				if request.URL.Query().Get("watch") == "" {
					return next.RoundTrip(request)
				}
				watches.Add(1)
				fake := answer()
				fake.Request, fake.Header = request, http.Header{"Content-Type": {"application/json"}}
				go func() { <-request.Context().Done(); _ = fake.Body.Close() }()
				return fake, nil
			})
			_, m := started(t, r, smallSpec("watched"))
			answers(t, m, time.Minute)
			if watches.Load() == 0 {
				t.Error("nothing was watched")
			}
		})
	}
}

// TestLaterGatewayTakesOver: a gateway that was started later has the sandbox from its first
// connection on; the one before loses its wires, and changes nothing any more.
func TestLaterGatewayTakesOver(t *testing.T) {
	s := clusterSettings(t)
	gateway := func() *Runtime {
		r, err := New(Options{Settings: *s, Installation: t.Name(), Owner: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		return r
	}
	older, later := gateway(), gateway()
	inst, err := older.Create(t.Context(), smallSpec("owned"))
	if err != nil {
		t.Fatal(err)
	}
	if err := inst.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := machine.New(inst.Dial, nil)
	defer m.Close()
	answers(t, m, time.Minute)
	again, err := later.Open(t.Context(), "owned")
	if err != nil {
		t.Fatal(err)
	}
	removeAtEnd(t, again)
	answers(t, m, time.Minute) // nothing is taken over yet
	taken := machine.New(again.Dial, nil)
	defer taken.Close()
	answers(t, taken, time.Minute)
	if err := m.Ping(t.Context()); err == nil {
		t.Error("the older gateway still has its wire")
	}
	for what, err := range map[string]error{"stop": inst.Stop(t.Context(), time.Second), "remove": inst.Remove(t.Context()), "start": inst.Start(t.Context())} {
		if !errors.Is(err, sandbox.ErrForeign) {
			t.Errorf("%s by the older gateway: %v", what, err)
		}
	}
	answers(t, taken, time.Minute)
	beside, err := testRuntimeOf(t, s, t.Name()).Open(t.Context(), "owned")
	if err != nil {
		t.Fatal(err)
	}
	third := machine.New(beside.Dial, nil)
	defer third.Close()
	answers(t, third, time.Minute) // a process that is no gateway takes nothing over
	answers(t, taken, time.Minute)
}

// testRuntimeOf is a runtime of an installation that is no gateway.
func testRuntimeOf(t *testing.T, s *kubekeys.Settings, installation string) *Runtime {
	t.Helper()
	r, err := New(Options{Settings: *s, Installation: installation})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// TestIdleSessionEnds: a session without use is closed and opened again when it is needed;
// one with a command that says nothing is not.
func TestIdleSessionEnds(t *testing.T) {
	r := testRuntime(t, clusterSettings(t))
	r.idleTimeout = 8 * time.Second // longer than a machine is silent that waits for its guest
	_, m := started(t, r, smallSpec("idle"))
	answers(t, m, time.Minute)
	dialled := r.dials.count.Load()
	underWay(t, m, 20*time.Second)()
	if now := r.dials.count.Load(); now != dialled {
		t.Errorf("%d dials while a command ran", now-dialled)
	}
	for deadline := time.Now().Add(time.Minute); r.openSessions() > 0; time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatal("a session without use stays open")
		}
	}
	for range 12 { // more often than a guest may break
		answers(t, m, time.Minute)
		r.mu.Lock()
		for _, s := range r.sessions {
			s.setCause(&transportError{errIdle})
			go s.close()
		}
		r.mu.Unlock()
	}
	answers(t, m, time.Minute)
}

func (r *Runtime) openSessions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}
