package browser

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"

	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/machine"
)

// ErrNone is returned where no browser answers in a sandbox.
var ErrNone = errors.New("no browser runs in the sandbox")

// Attach connects to the browser that runs in a sandbox already. To close it ends the
// connection only.
func Attach(ctx context.Context, m *machine.Machine, o Options) (*Browser, error) {
	b := o.browser(m)
	if err := b.dialControl(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return b, nil
}

// Conn returns the connection to the browser.
func (b *Browser) Conn() *devtools.Conn { return b.conn }

// IsOwn reports whether this process started the browser, so that Close ends it.
func (b *Browser) IsOwn() bool { return b.process != "" }

// Err returns why the browser is over, or nil while its connection is open.
func (b *Browser) Err() error { return b.conn.Err() }

// Check asks the browser for an answer and returns an error with the end of what it
// printed if there is none in time.
func (b *Browser) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if _, err := cdp.Call(ctx, b.conn.Session(""), browser.GetVersion, cdp.Empty{}); err != nil {
		return b.explain(fmt.Errorf("the browser does not answer: %w", err))
	}
	return nil
}

// Version says which program the browser is, and how it names itself to servers.
func (b *Browser) Version(ctx context.Context) (product, userAgent string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	v, err := cdp.Call(ctx, b.conn.Session(""), browser.GetVersion, cdp.Empty{})
	return printable(v.Product, maxName), printable(v.UserAgent, maxName), err
}

// Screen opens a connection to the screen that the browser's window is on.
func (b *Browser) Screen(ctx context.Context) (net.Conn, error) {
	return b.machine.Dial(ctx, "tcp", ScreenPort)
}

// Explain adds to an error why the browser is over, if it is.
func (b *Browser) Explain(err error) error {
	if b.Err() == nil {
		return err
	}
	return b.explain(fmt.Errorf("the browser has ended: %w", err))
}

// Close ends the connection, and the browser with all its processes if it was started
// here.
func (b *Browser) Close() error {
	if b.conn != nil {
		b.finish()
		_ = b.conn.Close()
	}
	if b.process == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*endGrace)
	defer cancel()
	return b.machine.End(ctx, b.process, endGrace)
}

// finish has a browser that was started here write a profile that is kept, and end.
func (b *Browser) finish() {
	if b.profile == "" || b.process == "" || b.conn.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), endGrace)
	defer cancel()
	if _, err := cdp.Call(ctx, b.conn.Session(""), browser.Close, cdp.Empty{}); err != nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-b.conn.Done():
	}
}
