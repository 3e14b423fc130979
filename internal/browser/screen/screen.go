// Package screen shows people the page of a browser in a sandbox, as a sequence of
// pictures, and passes on what they type and click. Pictures and sizes come from the
// sandbox: they are bounded, and nothing but the newest is kept.
package screen

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/devtools"
)

const (
	// MaxPicture is the largest picture; larger ones are left out.
	MaxPicture = 768 << 10
	// maxSize bounds the width and the height of a page, in its own pixels.
	maxSize = 16384
	// quality is that of the pictures, of 100.
	quality = 60
	// lookEvery is how often it is found out whether the tab is open.
	lookEvery = time.Second
)

// ErrNoPage is returned where the browser does not have the tab.
var ErrNoPage = errors.New("the browser shows no such page")

// jpegHead is what a JPEG picture begins with.
var jpegHead = []byte{0xff, 0xd8, 0xff}

// Frame is a picture of the page.
type Frame struct {
	Number        int
	Picture       []byte  // JPEG
	Width, Height float64 // of the page, in its own pixels
}

// Screen takes pictures of a tab until it is closed.
type Screen struct {
	browser *browser.Browser
	tab     string // "" is the first, and another when it is gone
	cancel  context.CancelFunc
	done    chan struct{}

	mu      sync.Mutex
	newest  *Frame
	changed chan struct{} // closed by the next picture
	session *devtools.Session
	err     error // why it is over

	url, title string // of the tab, as they were last seen
}

// Start begins to take pictures of a tab, "" is the first. The browser has to stay open
// until Close.
func Start(b *browser.Browser, tab string) *Screen {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Screen{browser: b, tab: tab, cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
	go s.run(ctx)
	return s
}

// Close ends it.
func (s *Screen) Close() {
	s.cancel()
	<-s.done
}

// run shows one tab after the other.
func (s *Screen) run(ctx context.Context) {
	defer close(s.done)
	var err error
	for err == nil {
		err = s.show(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	close(s.changed)
}

// show shows a tab as long as it is there.
func (s *Screen) show(ctx context.Context) error {
	tab, err := s.choose(ctx)
	if err != nil {
		return err
	}
	if tab == "" {
		return wait(ctx)
	}
	session, err := s.attach(ctx, tab)
	if err != nil {
		return wait(ctx) // it was closed meanwhile
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shown := make(chan struct{})
	frames := cdp.Events(ctx, session, page.ScreencastFrame)
	go func() { defer close(shown); s.take(ctx, session, frames) }()
	err = s.cast(ctx, session, tab)
	s.setSession(nil)
	cancel()
	<-shown
	_, _ = cdp.Call(context.WithoutCancel(ctx), s.browser.Conn().Session(""), target.DetachFromTarget, target.DetachFromTargetParams{SessionID: target.SessionID(session.ID())})
	return err
}

// attach returns a session of a tab.
func (s *Screen) attach(ctx context.Context, id string) (*devtools.Session, error) {
	flat := true
	conn := s.browser.Conn()
	attached, err := cdp.Call(ctx, conn.Session(""), target.AttachToTarget, target.AttachToTargetParams{TargetID: target.ID(id), Flatten: &flat})
	if err != nil {
		return nil, err
	}
	return conn.Session(string(attached.SessionID)), nil
}

// choose returns the tab to show; "" while there is none.
func (s *Screen) choose(ctx context.Context) (string, error) {
	if s.tab != "" {
		isOpen, err := s.look(ctx, s.tab)
		if err == nil && !isOpen {
			err = ErrNoPage
		}
		return s.tab, err
	}
	tabs, err := s.browser.Tabs(ctx)
	if err != nil || len(tabs) == 0 {
		return "", err
	}
	return tabs[0].ID, nil
}

// look reports whether a tab is open, and keeps what it shows.
func (s *Screen) look(ctx context.Context, id string) (isOpen bool, err error) {
	tabs, err := s.browser.Tabs(ctx)
	at := slices.IndexFunc(tabs, func(t browser.Tab) bool { return t.ID == id })
	if err != nil || at < 0 {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.url, s.title = tabs[at].URL, tabs[at].Title
	return true, nil
}

// Page returns the address and the title of the page that is shown, as they were a moment
// ago.
func (s *Screen) Page() (url, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.url, s.title
}

// cast has the tab send pictures until it is closed.
func (s *Screen) cast(ctx context.Context, session *devtools.Session, id string) error {
	most := int64(quality)
	if _, err := cdp.Call(ctx, session, page.Enable, page.EnableParams{}); err != nil {
		return wait(ctx)
	}
	_, err := cdp.Call(ctx, session, page.StartScreencast, page.StartScreencastParams{
		Format: page.StartScreencastFormatJpeg, Quality: &most, MaxWidth: browser.Width, MaxHeight: browser.Height, EveryNthFrame: 1,
	})
	if err != nil {
		return wait(ctx)
	}
	s.setSession(session)
	for {
		if isOpen, err := s.look(ctx, id); err != nil || !isOpen {
			return err
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

// wait waits until it is time to look again.
func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookEvery):
		return nil
	}
}

func (s *Screen) setSession(session *devtools.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
}

// take keeps the newest picture.
func (s *Screen) take(ctx context.Context, session *devtools.Session, frames iter.Seq2[page.EventScreencastFrame, error]) {
	for f, err := range frames {
		if err != nil || ctx.Err() != nil {
			return
		}
		s.keep(&f)
		if _, err := cdp.Call(ctx, session, page.ScreencastFrameAck, page.ScreencastFrameAckParams{SessionID: f.SessionID}); err != nil {
			return
		}
	}
}

// keep makes a picture the newest, if it is one.
func (s *Screen) keep(f *page.EventScreencastFrame) {
	m := f.Metadata
	if m == nil || len(f.Data) > MaxPicture || !bytes.HasPrefix(f.Data, jpegHead) || !isSize(m.DeviceWidth) || !isSize(m.DeviceHeight) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number := 1
	if s.newest != nil {
		number = s.newest.Number + 1
	}
	s.newest = &Frame{number, f.Data, m.DeviceWidth, m.DeviceHeight}
	close(s.changed)
	s.changed = make(chan struct{})
}

func isSize(x float64) bool { return x >= 1 && x <= maxSize }

// Next returns the newest picture, as soon as there is one with another number.
func (s *Screen) Next(ctx context.Context, known int) (*Frame, error) {
	for {
		s.mu.Lock()
		newest, changed, err := s.newest, s.changed, s.err
		s.mu.Unlock()
		switch {
		case err != nil:
			return nil, err
		case newest != nil && newest.Number != known:
			return newest, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-changed:
		}
	}
}

// Err returns why it is over, or nil while it is not.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
