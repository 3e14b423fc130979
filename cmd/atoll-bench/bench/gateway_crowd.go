package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// The model of the crowd speaks for a while, as real ones do.
const (
	pacedWords = 20
	pacedPause = 250 * time.Millisecond
)

// pacedModel streams a few words, one at a time.
func pacedModel(ctx context.Context) (base string, stop func() error, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(speakSlowly)}
	go func() { _ = server.Serve(l) }()
	return "http://" + l.Addr().String() + "/v1", server.Close, nil
}

func speakSlowly(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]%s}` + "\n\n"
	for range pacedWords {
		fmt.Fprintf(w, chunk, `{"index":0,"delta":{"role":"assistant","content":"word "},"finish_reason":null}`, "")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(pacedPause)
	}
	fmt.Fprintf(w, chunk, `{"index":0,"delta":{},"finish_reason":"stop"}`, "")
	fmt.Fprintf(w, chunk, "", `,"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}`)
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// audience is many sessions at once.
type audience struct {
	turns    int // of each
	events   atomic.Int64
	failures atomic.Int64
	mu       sync.Mutex
	first    error
	delays   []float64 // ms from an event to us
}

// gatewayCrowd has agents work for many sessions at once.
func gatewayCrowd(ctx context.Context, o Options, r *Report) (err error) {
	fmt.Fprintf(o.Progress, "%d sessions at once …\n", gatewaySessions)
	base, stop, err := pacedModel(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	s, err := startGateway(ctx, o, base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.crowd(ctx, gatewayWarm, 1) // fills what is kept for later
	before, err := s.holds(ctx)
	if err != nil {
		return err
	}
	if err := s.measureCrowd(ctx, o, r); err != nil {
		return err
	}
	more, err := s.left(ctx, before)
	if err != nil {
		return err
	}
	r.Ratios = append(r.Ratios, atMost("goroutines left when all have gone", more.goroutines, goroutinesLeft),
		atMost("descriptors left when all have gone", more.descriptors, descriptorsLeft))
	return nil
}

// measureCrowd measures what the clients cost, and how soon they get events.
func (s *gatewayStage) measureCrowd(ctx context.Context, o Options, r *Report) error {
	earlier, err := s.measure(ctx)
	if err != nil {
		return err
	}
	before, start := processCPU(s.child.Process.Pid), time.Now()
	c := s.crowd(ctx, gatewaySessions, gatewayTurns)
	took, spent := time.Since(start), microseconds(processCPU(s.child.Process.Pid)-before)
	m, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if c.first != nil {
		fmt.Fprintln(o.Progress, "the first failure:", c.first)
	}
	const delay, dropped = "atoll_gateway_event_delay_seconds", `atoll_gateway_clients_dropped_total{reason="slow"}`
	queued := m.distribution(earlier, delay, "from an event until it is written to a connection", "ms", 1000)
	turns := strconv.Itoa(gatewaySessions * gatewayTurns)
	r.Rows = append(r.Rows, queued,
		row("from an event until its reader has it", "ms", c.delays),
		row(turns+" turns, all", "s", []float64{took.Seconds()}),
		row("CPU of an event", "µs", []float64{spent / float64(c.events.Load())}),
		row("CPU of an event and connection", "µs", []float64{spent / float64(queued.N)}))
	r.Ratios = append(r.Ratios, exactly("failures of "+turns+" turns", int(c.failures.Load()), 0),
		exactly("connections dropped", int(m[dropped]-earlier[dropped]), 0),
		atMost("ms from an event until it is written to a connection, p99", queued.P99, gatewayDelay))
	return nil
}

// crowd has so many sessions take so many turns each, on connections that are
// closed at the end.
func (s *gatewayStage) crowd(ctx context.Context, sessions, turns int) *audience {
	c := &audience{turns: turns}
	var all sync.WaitGroup
	var clients []*protocol.Client
	defer func() { closeLinks(clients) }()
	for link := range gatewayLinks {
		client := s.client()
		clients = append(clients, client)
		for n := range sessions / gatewayLinks {
			all.Go(func() { c.session(ctx, client, fmt.Sprintf("agent:main:crowd-%d-%d", link, n)) })
		}
	}
	all.Wait()
	return c
}

// session says something, and when it is answered, again.
func (c *audience) session(ctx context.Context, client *protocol.Client, key string) {
	stream := client.Stream(key)
	defer stream.Close()
	for range c.turns {
		if err := c.turn(ctx, client, stream, key); err != nil {
			c.failures.Add(1)
			c.mu.Lock()
			c.first = firstOf(c.first, err)
			c.mu.Unlock()
		}
	}
}

func firstOf(first, err error) error {
	if first != nil {
		return first
	}
	return err
}

func (c *audience) turn(ctx context.Context, client *protocol.Client, stream *protocol.Stream, key string) error {
	turn, err := client.Agent(ctx, &protocol.AgentParams{Message: runTask, SessionKey: key, IdempotencyKey: rand.Text()})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		outcome, err := turn.Wait(ctx)
		if err == nil && outcome.Status != "ok" {
			err = errors.New(outcome.Status + ": " + outcome.Reason)
		}
		ended <- err
	}()
	for {
		select {
		case <-stream.Ready():
			c.note(stream.Take())
		case err := <-ended:
			c.note(stream.Take())
			return err
		}
	}
}

// note counts events, and how old they are.
func (c *audience) note(events []protocol.SessionEvent) {
	now := time.Now().UnixMilli()
	c.events.Add(int64(len(events)))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		c.delays = append(c.delays, float64(max(0, now-e.TS)))
	}
}

// gatewayRest measures what idle sessions and connections cost.
func gatewayRest(ctx context.Context, o Options, r *Report) (err error) {
	fmt.Fprintf(o.Progress, "%d idle sessions, %d idle connections …\n", gatewayIdle, gatewayIdleLinks)
	s, err := startGateway(ctx, o, "http://127.0.0.1:9/v1")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	client := s.client()
	defer client.Close()
	empty := treeMB(s.child.Process.Pid)
	for n := range gatewayIdle {
		params := map[string]any{"key": "agent:main:idle-" + strconv.Itoa(n), "label": "idle " + strconv.Itoa(n)}
		if err := client.Call(ctx, "sessions.patch", params, nil); err != nil {
			return err
		}
	}
	sessions := treeMB(s.child.Process.Pid)
	links, err := s.idle(ctx, gatewayIdleLinks)
	defer closeLinks(links)
	if err != nil {
		return err
	}
	full := treeMB(s.child.Process.Pid)
	r.Rows = append(r.Rows, row("memory of an idle session", "KB", []float64{max(0, sessions-empty) * 1024 / gatewayIdle}),
		row("memory of an idle connection", "KB", []float64{max(0, full-sessions) * 1024 / gatewayIdleLinks}))
	r.Ratios = append(r.Ratios, atMost("KB of an idle session", max(0, sessions-empty)*1024/gatewayIdle, gatewayIdleKB),
		atMost(fmt.Sprintf("MB of the gateway with %d idle connections", gatewayIdleLinks), full, gatewayIdleLinksMB))
	return nil
}

func closeLinks(links []*protocol.Client) {
	for _, link := range links {
		link.Close()
	}
}

// idle opens connections that say hello and nothing more.
func (s *gatewayStage) idle(ctx context.Context, n int) (links []*protocol.Client, err error) {
	for range n {
		c := s.client()
		links = append(links, c)
		if _, err := c.Hello(ctx); err != nil {
			return links, fmt.Errorf("connection %d: %w", len(links), err)
		}
	}
	return links, nil
}
