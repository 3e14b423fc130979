package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

const (
	// settlePause is how long a page has to begin loading another after an action.
	settlePause = 150 * time.Millisecond
	// requestPause is how long a page that was requested has to begin loading.
	requestPause = 2 * time.Second
	// settleTimeout is how long an action waits for the page to have loaded.
	settleTimeout = 10 * time.Second
)

// Settle does something to the page and then waits until what it began to load has
// loaded, or its time is over. A page that loads nothing is waited for until it has
// painted once more.
func (p *Page) Settle(ctx context.Context, do func() error) error {
	started, cancel := p.session.Subscribe(page.FrameStartedLoading.Method)
	defer cancel()
	requested, cancel2 := p.session.Subscribe(page.FrameRequestedNavigation.Method)
	defer cancel2()
	stopped, cancel3 := p.session.Subscribe(page.FrameStoppedLoading.Method)
	defer cancel3()
	if err := do(); err != nil {
		return err
	}
	loads, err := p.begins(ctx, started, requested)
	if err != nil || !loads {
		return err
	}
	return p.awaitStop(ctx, stopped)
}

// begins reports whether the page begins to load another. Events of what an action began
// come before the answer of the page that has painted after it.
func (p *Page) begins(ctx context.Context, started, requested <-chan jsonv2.Value) (bool, error) {
	painted := make(chan struct{})
	go p.paint(ctx, painted)
	select {
	case <-ctx.Done():
	case <-time.After(settlePause):
	case <-painted:
	case _, open := <-started:
		return open, p.session.Err()
	case <-requested:
		return p.startsSoon(ctx, started), p.session.Err()
	}
	select {
	case _, open := <-started:
		return open, p.session.Err()
	case <-requested:
		return p.startsSoon(ctx, started), p.session.Err()
	default:
	}
	return false, ctx.Err()
}

// startsSoon waits until a page that was requested begins to load.
func (p *Page) startsSoon(ctx context.Context, started <-chan jsonv2.Value) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(requestPause):
		return false
	case _, open := <-started:
		return open
	}
}

// paint closes a channel when the page has painted once more. What the page answers means
// nothing, and one that was left or does not answer is not waited for.
func (p *Page) paint(ctx context.Context, painted chan<- struct{}) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	wait := true
	_, err := cdp.Call(ctx, p.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "new Promise(done => requestAnimationFrame(() => setTimeout(done)))", AwaitPromise: &wait})
	if err == nil {
		close(painted)
	}
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
