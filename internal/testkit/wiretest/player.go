package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/atoll-run/atoll/internal/wire"
)

// Player is a guest that sends what is in a recording. A request that is not in
// it fails the test.
type Player struct {
	tb        testing.TB
	recording *Recording

	mu    sync.Mutex
	used  map[*Exchange]bool
	names map[string]string // ids of the recording, and those of this run
	busy  sync.WaitGroup
}

// Play returns a player of a recording. It ends with the test, if the host does.
func Play(tb testing.TB, recording *Recording) *Player {
	tb.Helper()
	p := &Player{tb: tb, recording: recording, used: map[*Exchange]bool{}, names: map[string]string{}}
	tb.Cleanup(p.busy.Wait)
	return p
}

// Connect is the dialer of the host.
func (p *Player) Connect(context.Context) (net.Conn, error) {
	host, ours, err := pair()
	if err != nil {
		return nil, err
	}
	p.busy.Go(func() {
		defer ours.Close()
		p.wire(ours)
	})
	return host, nil
}

// Unused returns the requests of the recording that were not made.
func (p *Player) Unused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var unasked []string
	for _, talk := range p.recording.Exchanges {
		if !p.used[talk] {
			unasked = append(unasked, string(talk.Request))
		}
	}
	return unasked
}

func (p *Player) wire(conn net.Conn) {
	hello, err := wire.ReadHello(conn)
	if err != nil {
		return
	}
	welcome := p.recording.Welcome
	if hello.Min > welcome.Version || hello.Max < welcome.Version {
		welcome = wire.Welcome{Error: wire.Fail(wire.CodeVersion, "the guest speaks another version of the protocol")}
	}
	if wire.WriteWelcome(conn, &welcome) != nil {
		return
	}
	if hello.Kind == wire.KindDirect {
		p.stream(conn, true)
		return
	}
	session, err := wire.GuestMux(conn)
	if err != nil {
		return
	}
	defer session.Close()
	var streams sync.WaitGroup
	defer streams.Wait()
	for {
		stream, err := session.Accept()
		if err != nil {
			return
		}
		streams.Go(func() {
			defer stream.Close()
			p.stream(stream, false)
		})
	}
}

// stream plays one exchange after the other until the host leaves.
func (p *Player) stream(conn net.Conn, direct bool) {
	from := newReader(conn)
	for {
		request, err := from.request()
		if err != nil || request == nil {
			return
		}
		if direct && !p.hasDirect(request) {
			if wire.WriteJSON(conn, wire.FrameError, wire.Fail(wire.CodeUnknownOp, "a direct wire does not do this")) != nil {
				return
			}
			continue
		}
		talk := p.find(request)
		if talk == nil {
			p.tb.Errorf("the recording has no such request: %s", request)
			return
		}
		if !p.play(talk, from, conn) {
			return
		}
	}
}

// hasDirect reports whether the guest did such an operation over a direct connection.
func (p *Player) hasDirect(request json.RawMessage) bool {
	op := operation(request)
	return slices.ContainsFunc(p.recording.Exchanges, func(t *Exchange) bool { return t.Direct && operation(t.Request) == op })
}

func operation(request json.RawMessage) wire.Op {
	var r wire.Request
	_ = json.Unmarshal(request, &r)
	return r.Op
}

// find returns the exchange that begins with a request, and records its ids.
// One that was played already serves again: how many connections are awaited at
// the same time, say, is not always the same.
func (p *Player) find(request json.RawMessage) *Exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *Exchange
	for _, talk := range p.recording.Exchanges {
		if same(talk.Request, request) {
			if found = talk; !p.used[talk] {
				break
			}
		}
	}
	if found == nil {
		return nil
	}
	p.used[found] = true
	now := ids(request)
	for i, name := range ids(found.Request) {
		if name != "" && i < len(now) {
			p.names[name] = now[i]
		}
	}
	return found
}

// idle reports whether the guest sent nothing until the host left: it waited for a
// connection that did not come.
func (t *Exchange) idle() bool {
	return operation(t.Request) == wire.OpPortAccept && !slices.ContainsFunc(t.Events, func(e Event) bool { return e.Type == wire.FrameStarted })
}

// play reports whether there may be more on the same wire.
func (p *Player) play(talk *Exchange, from *reader, conn net.Conn) bool {
	if talk.idle() {
		_, _ = from.buffered.Peek(1)
		return false
	}
	for _, e := range talk.Events {
		switch {
		case e.Host && e.Type == 0:
			next, err := from.buffered.Peek(1)
			if err == nil && next[0] != 0 { // not another request
				p.tb.Errorf("to %s the host has more to say than it had", talk.Request)
			}
			return err == nil && next[0] == 0
		case e.Host:
			frame, err := from.frame()
			if err != nil {
				return false
			}
			if frame.Type != e.Type || !slices.Equal(frame.Payload, e.payload()) {
				p.tb.Errorf("to %s the host sent frame %d, %q; then it was %d, %q", talk.Request, frame.Type, frame.Payload, e.Type, e.payload())
			}
		case e.Type == 0:
			return false
		default:
			if write(conn, e.Type, p.renamed(e.payload())) != nil {
				return false
			}
		}
	}
	return true
}

// renamed returns a payload with the ids of this run.
func (p *Player) renamed(payload []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	for then, now := range p.names {
		payload = bytes.ReplaceAll(payload, []byte(then), []byte(now))
	}
	return payload
}
