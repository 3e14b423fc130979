package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/target"

	"github.com/atoll-run/atoll/internal/browser/devtools"
)

// blockedURLs are the URL patterns that Chromium refuses to load in every tab: files of the
// sandbox and the browser's internal pages. Requests over HTTP are not paused for them.
var blockedURLs = []string{"file:*", "chrome:*", "chrome-untrusted:*", "devtools:*", "view-source:*", "filesystem:*", "ftp:*", "chrome-extension:*", "isolated-app:*"}

// guardTabs has every tab closed that shows what is not the web, also of programs and those
// that pages open: only tabs in use are attached to.
func (b *Browser) guardTabs(ctx context.Context) error {
	root := b.conn.Session("")
	for _, method := range []string{target.TargetCreated.Method, target.TargetInfoChanged.Method} {
		seen, _ := root.Subscribe(method)
		go func() {
			for text := range seen {
				var e target.EventTargetInfoChanged // both have the same form
				if jsonv2.Unmarshal(text, &e) == nil && e.TargetInfo != nil {
					b.judgeTab(e.TargetInfo)
				}
			}
		}()
	}
	_, err := cdp.Call(ctx, root, target.SetDiscoverTargets, target.SetDiscoverTargetsParams{Discover: true, Filter: target.Filter{{Type: "page"}}})
	return err
}

// judgeTab closes a tab that shows what is not the web.
func (b *Browser) judgeTab(t *target.Info) {
	if t.Type != "page" || IsWeb(t.URL) || !isID(string(t.TargetID)) {
		return
	}
	b.refusals.add(t.URL)
	_ = b.CloseTab(context.Background(), string(t.TargetID)) // it may be gone
}

// IsWeb reports whether a tab may show an address: pages of the web and what the browser
// shows in place of one.
func IsWeb(address string) bool {
	for _, begin := range []string{"http://", "https://", "about:", "blob:", "chrome-error:"} {
		if strings.HasPrefix(address, begin) {
			return true
		}
	}
	return address == ""
}

// guard has requests of a tab for what is not the web held until refuseBlocked fails them.
func (b *Browser) guard(ctx context.Context, s *devtools.Session) error {
	patterns := make([]*fetch.RequestPattern, 0, len(blockedURLs))
	for _, url := range blockedURLs {
		patterns = append(patterns, &fetch.RequestPattern{URLPattern: url, RequestStage: fetch.RequestStageRequest})
	}
	_, err := cdp.Call(ctx, s, fetch.Enable, fetch.EnableParams{Patterns: patterns})
	return err
}

// refuseBlocked fails every request that is held, until the connection ends. One that is
// not answered stays held.
func (b *Browser) refuseBlocked() {
	held, _ := b.conn.SubscribeAll(fetch.RequestPaused.Method)
	go func() {
		for event := range held {
			var e fetch.EventRequestPaused
			if jsonv2.Unmarshal(event.Params, &e) != nil || e.Request == nil {
				continue
			}
			b.refusals.add(e.Request.URL)
			_, _ = cdp.Call(context.Background(), b.conn.Session(event.Session), fetch.FailRequest,
				fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: network.ErrorReasonBlockedByClient})
		}
	}()
}

// maxRefusals is how many refusals are kept.
const maxRefusals = 10

// Refusals are attempts of pages to open what is not the web.
type Refusals struct {
	mu   sync.Mutex
	list []string
}

// add keeps what was refused, once.
func (r *Refusals) add(text string) {
	text = printable(text, maxName)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.list) < maxRefusals && !slices.Contains(r.list, text) {
		r.list = append(r.list, text)
	}
}

// Refused returns what pages tried to open since the last time and is not the web.
func (b *Browser) Refused() []string {
	b.refusals.mu.Lock()
	defer b.refusals.mu.Unlock()
	list := b.refusals.list
	b.refusals.list = nil
	return list
}

// keepLogged keeps what the browser says of an address that it did not open for a page.
func (r *Record) keepLogged(text jsonv2.Value) {
	var e log.EventEntryAdded
	if jsonv2.Unmarshal(text, &e) != nil || e.Entry == nil || r.refusals == nil {
		return
	}
	for _, begin := range []string{"Not allowed to load local resource: ", "Not allowed to navigate top frame to "} {
		if what, ok := strings.CutPrefix(e.Entry.Text, begin); ok {
			r.refusals.add(what)
		}
	}
}

// keepRedirect keeps the address of a document that led to something that is not the web.
func (r *Record) keepRedirect(e *network.EventLoadingFailed) {
	if e.Type == network.ResourceTypeDocument && strings.Contains(e.ErrorText, "ERR_UNSAFE_REDIRECT") && r.refusals != nil {
		r.refusals.add(fmt.Sprintf("what %s leads to", r.urls[e.RequestID]))
	}
}
