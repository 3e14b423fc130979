package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
)

const (
	// settlePause is how long a page has to begin loading another after an action.
	settlePause = 150 * time.Millisecond
	// settleTimeout is how long an action waits for the page to have loaded.
	settleTimeout = 10 * time.Second
)

// Settle does something to the page and then waits until what it began to load has
// loaded, or its time is over.
func (p *Page) Settle(ctx context.Context, do func() error) error {
	started, cancel := p.session.Subscribe(page.FrameStartedLoading.Method)
	defer cancel()
	stopped, cancel2 := p.session.Subscribe(page.FrameStoppedLoading.Method)
	defer cancel2()
	if err := do(); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settlePause):
		return nil
	case _, open := <-started:
		if !open {
			return p.session.Err()
		}
	}
	return p.awaitStop(ctx, stopped)
}

// awaitStop waits until the page loads nothing more.
func (p *Page) awaitStop(ctx context.Context, stopped <-chan jsonv2.Value) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(settleTimeout):
	case <-stopped:
	}
	return nil
}
