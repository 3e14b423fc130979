package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/atoll-run/atoll/internal/browser/devtools"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Page is one tab. Leave it.
type Page struct {
	ID          string
	Record      Record
	Dialogs     Dialogs
	session     *devtools.Session
	loadTimeout time.Duration
	refs        refs
	frames      remoteFrames
	left        chan struct{}
}

// State is where a page is.
type State struct {
	URL   string `json:"url"`
	Title string `json:"title"`
	// Loading says that the page had not loaded when its time was over.
	Loading bool `json:"loading,omitzero"`
}

// NewPage opens a tab.
func (b *Browser) NewPage(ctx context.Context) (*Page, error) {
	if err := b.checkRoom(ctx); err != nil {
		return nil, err
	}
	made, err := cdp.Call(ctx, b.conn.Session(""), target.CreateTarget, target.CreateTargetParams{URL: blank})
	if err != nil {
		return nil, err
	}
	return b.Page(ctx, string(made.TargetID))
}

// Page returns the tab of an id.
func (b *Browser) Page(ctx context.Context, id string) (*Page, error) {
	flat := true
	attached, err := cdp.Call(ctx, b.conn.Session(""), target.AttachToTarget, target.AttachToTargetParams{TargetID: target.ID(id), Flatten: &flat})
	if err != nil {
		return nil, err
	}
	p := &Page{ID: id, session: b.conn.Session(string(attached.SessionID)), loadTimeout: b.loadTimeout, left: make(chan struct{})}
	p.Record.refusals = &b.refusals
	p.watchDialogs(p.session)
	p.record(p.session)
	if err := errors.Join(b.guard(ctx, p.session), p.enable(ctx)); err != nil {
		p.Leave()
		return nil, err
	}
	return p, nil
}

// enable has the browser tell what the page does.
func (p *Page) enable(ctx context.Context) error {
	_, err := cdp.Call(ctx, p.session, page.Enable, page.EnableParams{})
	_, err2 := cdp.Call(ctx, p.session, accessibility.Enable, cdp.Empty{})
	_, err3 := cdp.Call(ctx, p.session, runtime.Enable, cdp.Empty{})
	_, err4 := cdp.Call(ctx, p.session, network.Enable, network.EnableParams{})
	_, err5 := cdp.Call(ctx, p.session, log.Enable, cdp.Empty{})
	_, err6 := cdp.Call(ctx, p.session, inspector.Enable, cdp.Empty{})
	return errors.Join(err, err2, err3, err4, err5, err6, p.attachFrames(ctx, p.session))
}

// Leave ends the use of the tab, which stays open.
func (p *Page) Leave() { close(p.left) }

// CheckURL refuses what is not a page of the web: files of the sandbox, pages of the
// browser itself, scripts.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == blank:
		return nil
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return errhint.With(fmt.Errorf("%.200q is no address of a web page", text), "write for example https://example.com/")
	case u.User != nil:
		return errhint.With(errors.New("the address has a user name or a password in it"), "leave them out: they would be in records and in the page's history")
	}
	return nil
}

// Navigate opens an address and waits until the page has loaded, or its time is over.
func (p *Page) Navigate(ctx context.Context, address string) (*State, error) {
	if err := CheckURL(address); err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, p.loadTimeout)
	defer cancel()
	loaded := cdp.Events(waiting, p.session, page.LoadEventFired)
	begun, err := cdp.Call(waiting, p.session, page.Navigate, page.NavigateParams{URL: address})
	if err != nil {
		return nil, err
	}
	if begun.ErrorText != "" {
		return nil, fmt.Errorf("%s: %.200s", address, begun.ErrorText)
	}
	isLoaded := begun.LoaderID == ""
	if !isLoaded {
		for _, err := range loaded {
			isLoaded = err == nil
			break
		}
	}
	state, err := p.State(ctx)
	if err == nil {
		state.Loading = !isLoaded
	}
	return state, err
}

// State returns where the page is.
func (p *Page) State(ctx context.Context) (*State, error) {
	history, err := cdp.Call(ctx, p.session, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	at := history.CurrentIndex
	if at < 0 || at >= int64(len(history.Entries)) || history.Entries[at] == nil {
		return nil, errors.New("the browser names no current page")
	}
	entry := history.Entries[at]
	return &State{URL: printable(entry.URL, maxURL), Title: printable(entry.Title, maxName)}, nil
}
