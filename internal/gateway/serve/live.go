package serve

import (
	"context"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/gateway/live"
	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// openLive makes what tells pages what happens now, and has it told of changes.
func (g *Gateway) openLive() {
	h := live.New(live.Options{Source: g.rest.Live(), Access: g.access, Origins: g.config.Origins, Logger: g.logger})
	g.live.Store(h)
	quit := g.parts.Commits.Approvals().Subscribe(func(approval.Event) { h.Changed(live.TopicApprovals); h.Changed(live.TopicRuns) })
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); g.watchSessions(stop) }()
	g.onClose(func() {
		quit()
		close(stop)
		<-done
		h.Close()
	})
}

// sessionBuffer is how many events of sessions wait to be looked at.
const sessionBuffer = 1024

// watchSessions tells lists of sessions of what changes them.
func (g *Gateway) watchSessions(stop <-chan struct{}) {
	for {
		all := g.sessions.Subscribe(session.View{All: true}, sessionBuffer)
		if !g.tellSessions(all, stop) {
			return
		}
		g.changed(live.TopicSessions) // some events were lost
	}
}

// tellSessions reads events until some are lost; false is the end.
func (g *Gateway) tellSessions(all *session.Subscription, stop <-chan struct{}) bool {
	defer all.Close()
	for {
		select {
		case <-stop:
			return false
		case e, ok := <-all.Events():
			if !ok {
				return all.Lost()
			}
			switch e.Kind {
			case session.Accepted, session.Started, session.Ended, session.Changed:
				g.changed(live.TopicSessions)
			}
		}
	}
}

// tellSandboxes tells lists of sandboxes of those that are started or removed.
func (g *Gateway) tellSandboxes() {
	count := g.parts.Manager.Watch
	g.parts.Manager.Watch = func(ctx context.Context, a *sandbox.Activity) {
		count(ctx, a)
		g.changed(live.TopicSandboxes)
		if a.Kind == sandbox.KindBrowser {
			g.changed(live.TopicBrowsers)
		}
	}
}

// changed tells pages that a topic has changed.
func (g *Gateway) changed(topic string) {
	if h := g.live.Load(); h != nil {
		h.Changed(topic)
	}
}
