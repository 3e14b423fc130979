package ws

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// hub holds the connections by account, which decides what they see, by their id,
// and by their token.
type hub struct {
	server   *Server
	buffered atomic.Int64

	mu       sync.Mutex
	accounts map[string]*accountConns // "" are connections that see all accounts
	byID     map[string]*conn
	tokens   map[string]*tokenConns
	closed   bool
	emptyCh  chan struct{} // closed when the last connection ended after closeAll
}

// accountConns are the connections of one account's tokens.
type accountConns struct {
	conns   map[*conn]struct{}
	version protocol.StateVersion
	changed bool // since presence was last published
}

// tokenConns are the connections of one token.
type tokenConns struct {
	conns map[*conn]struct{}
	stop  context.CancelFunc
}

func newHub(s *Server) *hub {
	return &hub{server: s, accounts: map[string]*accountConns{}, byID: map[string]*conn{}, tokens: map[string]*tokenConns{}, emptyCh: make(chan struct{})}
}

// add registers a connection; false means that the gateway is closing.
func (h *hub) add(c *conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	a := h.accounts[c.caller.Account]
	if a == nil {
		a = &accountConns{conns: map[*conn]struct{}{}, version: protocol.StateVersion{Presence: 1, Health: 1}}
		h.accounts[c.caller.Account] = a
	}
	a.conns[c] = struct{}{}
	a.version.Presence++
	a.changed = true
	h.byID[c.id] = c
	h.watch(c)
	return true
}

// watch closes connections when their token ends. One goroutine watches for all
// connections of a token. The caller holds the lock.
func (h *hub) watch(c *conn) {
	w := h.tokens[c.caller.Token]
	if w == nil {
		ended, release := h.server.Access.Tokens.Watch(c.caller)
		ctx, cancel := context.WithCancel(h.server.ctx)
		w = &tokenConns{map[*conn]struct{}{}, cancel}
		h.tokens[c.caller.Token] = w
		h.server.work.Go(func() {
			defer release()
			select {
			case <-ended:
				h.closeToken(w)
			case <-ctx.Done():
			}
		})
	}
	w.conns[c] = struct{}{}
}

// closeToken closes the connections of a token that is no longer valid.
func (h *hub) closeToken(w *tokenConns) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range w.conns {
		c.out.close(protocol.ClosePolicy, "the token is not valid any more")
	}
	for token, known := range h.tokens {
		if known == w {
			delete(h.tokens, token)
		}
	}
}

func (h *hub) remove(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byID, c.id)
	if a := h.accounts[c.caller.Account]; a != nil {
		delete(a.conns, c)
		a.version.Presence++
		a.changed = true
		if len(a.conns) == 0 {
			delete(h.accounts, c.caller.Account)
		}
	}
	if w := h.tokens[c.caller.Token]; w != nil {
		delete(w.conns, c)
		if len(w.conns) == 0 {
			w.stop()
			delete(h.tokens, c.caller.Token)
		}
	}
	if h.closed && len(h.byID) == 0 {
		h.signalEmpty()
	}
}

// signalEmpty closes emptyCh once. The caller holds the lock.
func (h *hub) signalEmpty() {
	select {
	case <-h.emptyCh:
	default:
		close(h.emptyCh)
	}
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.byID)
}

// publish sends events to the connections that may see an account, and to no
// others.
func (h *hub) publish(account string, events []encodedEvent) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.enqueue(h.accounts[account], events)
	if account != "" {
		h.enqueue(h.accounts[""], events)
	}
}

func (h *hub) enqueue(a *accountConns, events []encodedEvent) {
	if a == nil {
		return
	}
	for c := range a.conns {
		for i := range events {
			if p := events[i].frame(c.version); p != nil {
				c.out.sendEvent(p)
			}
		}
	}
}

// publishToOrigin sends an event to the connection that submitted a task, if it
// receives tool events and may see the account.
func (h *hub) publishToOrigin(id, account string, e encodedEvent) {
	h.mu.Lock()
	c := h.byID[id]
	h.mu.Unlock()
	if c == nil || !c.tools || !c.caller.Sees(account) {
		return
	}
	if p := e.frame(c.version); p != nil {
		c.out.sendShared(&sharedFrame{data: append(slices.Clip(p.data), '}'), at: p.at}) // sent to one connection only: without a number
	}
}

// skipSeq skips a number on every connection, which shows clients that events were
// lost.
func (h *hub) skipSeq() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.byID {
		c.out.skipSeq()
	}
}

// each calls f for every account with connections.
func (h *hub) each(f func(name string, a *accountConns)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, a := range h.accounts {
		f(name, a)
	}
}

// announceShutdown sends the shutdown event to every connection, and accepts no
// more connections.
func (h *hub) announceShutdown(reason string) {
	e := sameEvent("shutdown", map[string]any{"reason": reason})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, a := range h.accounts {
		h.enqueue(a, []encodedEvent{e})
	}
}

// closeAll closes every connection after what is queued for it.
func (h *hub) closeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, a := range h.accounts {
		for c := range a.conns {
			c.out.close(protocol.CloseRestart, "service restart")
		}
	}
	if len(h.byID) == 0 {
		h.signalEmpty()
	}
}

// waitEmpty waits until every connection has ended.
func (h *hub) waitEmpty(ctx context.Context) {
	select {
	case <-h.emptyCh:
	case <-ctx.Done():
	}
}

// dropTimeout bounds the wait for connections that were dropped.
const dropTimeout = 10 * time.Second

// dropAll drops every connection and waits for their end, at most dropTimeout.
func (h *hub) dropAll() {
	h.mu.Lock()
	h.closed = true
	all := slices.Collect(maps.Values(h.byID))
	if len(all) == 0 {
		h.signalEmpty()
	}
	h.mu.Unlock()
	for _, c := range all {
		c.Drop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	h.waitEmpty(ctx)
}

// encodedEvent is an event in the form of both versions, encoded when the first
// connection of a version needs it.
type encodedEvent struct {
	name   string
	v3, v4 any // nil where a version does not have it
	state  *protocol.StateVersion
	at     time.Time // when it was published; zero for what is not counted
	pages  map[int]*sharedFrame
}

func sameEvent(name string, payload any) encodedEvent { return newEvent(name, payload, payload) }

func newEvent(name string, v3, v4 any) encodedEvent {
	return encodedEvent{name: name, v3: v3, v4: v4, pages: map[int]*sharedFrame{}}
}

// frame returns the event without its last brace, so that a number can be appended.
func (t *encodedEvent) frame(version int) *sharedFrame {
	if p, ok := t.pages[version]; ok {
		return p
	}
	payload := t.v3
	if version >= protocol.V4 {
		payload = t.v4
	}
	var p *sharedFrame
	if payload != nil {
		p = t.encode(payload)
	}
	t.pages[version] = p
	return p
}

func (t *encodedEvent) encode(payload any) *sharedFrame {
	body, err := json.Marshal(payload)
	if err != nil {
		return nil
	}
	data, err := json.Marshal(protocol.Event{Type: protocol.TypeEvent, Event: t.name, State: t.state})
	if err != nil {
		return nil
	}
	data = append(append(data[:len(data)-1], `,"payload":`...), body...)
	return &sharedFrame{data: data, at: t.at}
}

// tick sends tick, presence and health events at an interval.
func (s *Server) tick() {
	tick, presence := time.NewTicker(s.Limits.Tick), time.NewTicker(time.Second)
	defer tick.Stop()
	defer presence.Stop()
	healthy := true
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			e := []encodedEvent{sameEvent("tick", map[string]any{"ts": now.UnixMilli()})}
			s.hub.each(func(_ string, a *accountConns) { s.hub.enqueue(a, e) })
			healthy = s.publishHealth(healthy)
		case <-presence.C:
			s.hub.publishPresence()
		}
	}
}

// publishPresence publishes presence to accounts whose connections changed.
func (h *hub) publishPresence() {
	h.each(func(_ string, a *accountConns) {
		if !a.changed || len(a.conns) > presenceWatcher {
			return
		}
		a.changed = false
		e := sameEvent("presence", map[string]any{"presence": append([]any{h.self()}, a.entries(nil)...)})
		version := a.version
		e.state = &version
		h.enqueue(a, []encodedEvent{e})
	})
}
