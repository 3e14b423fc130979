package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"github.com/atoll-run/atoll/internal/browser/devtools"
)

// maxKept is how many messages, errors and requests of a page are kept, of each.
const maxKept = 200

// Record is what a page has said, failed with or asked for since it was opened.
type Record struct {
	mu       sync.Mutex
	console  []string
	errors   []string
	requests []string
	urls     map[network.RequestID]string
	refusals *Refusals // of the browser; nil keeps none
}

// add keeps a line of a list; the oldest go.
func (r *Record) add(list *[]string, line string) {
	if len(*list) == maxKept {
		*list = (*list)[1:]
	}
	*list = append(*list, line)
}

// Lines returns what was kept under a name: console, errors or requests; with forget it is
// forgotten.
func (r *Record) Lines(name string, forget bool) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := map[string]*[]string{"console": &r.console, "errors": &r.errors, "requests": &r.requests}[name]
	found := append([]string(nil), *list...)
	if forget {
		*list = nil
	}
	return found
}

// events are the events of a page that are recorded.
type events struct{ said, thrown, sent, received, failed, logged <-chan jsonv2.Value }

// record keeps what the page says until the connection ends or the page is left.
func (p *Page) record(s *devtools.Session) {
	var e events
	var cancels []func()
	on := func(method string) <-chan jsonv2.Value {
		c, cancel := s.Subscribe(method)
		cancels = append(cancels, cancel)
		return c
	}
	e.said, e.thrown = on(runtime.ConsoleAPICalled.Method), on(runtime.ExceptionThrown.Method)
	e.logged = on(log.EntryAdded.Method)
	e.sent, e.received, e.failed = on(network.RequestWillBeSent.Method), on(network.ResponseReceived.Method), on(network.LoadingFailed.Method)
	go func() {
		defer func() {
			for _, cancel := range cancels {
				cancel()
			}
		}()
		for p.Record.take(&e, p.left) {
		}
	}()
}

// take keeps one event; false if there are no more.
func (r *Record) take(e *events, left <-chan struct{}) bool {
	var text jsonv2.Value
	var open bool
	var keep func(jsonv2.Value)
	select {
	case <-left:
		return false
	case text, open = <-e.said:
		keep = r.keepSaid
	case text, open = <-e.thrown:
		keep = r.keepThrown
	case text, open = <-e.sent:
		keep = r.keepSent
	case text, open = <-e.received:
		keep = r.keepReceived
	case text, open = <-e.failed:
		keep = r.keepFailed
	case text, open = <-e.logged:
		keep = r.keepLogged
	}
	if !open {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	keep(text)
	return true
}

func (r *Record) keepSaid(text jsonv2.Value) {
	var e runtime.EventConsoleAPICalled
	if jsonv2.Unmarshal(text, &e) != nil {
		return
	}
	var parts []string
	for _, a := range e.Args {
		switch {
		case a == nil:
		case len(a.Value) > 0:
			parts = append(parts, strings.Trim(string(a.Value), `"`))
		default:
			parts = append(parts, a.Description)
		}
	}
	r.add(&r.console, printable(fmt.Sprintf("[%s] %s", e.Type, strings.Join(parts, " ")), maxName))
}

func (r *Record) keepThrown(text jsonv2.Value) {
	var e runtime.EventExceptionThrown
	if jsonv2.Unmarshal(text, &e) != nil || e.ExceptionDetails == nil {
		return
	}
	_, err := valueOf(nil, e.ExceptionDetails)
	r.add(&r.errors, err.Error())
}

func (r *Record) keepSent(text jsonv2.Value) {
	var e network.EventRequestWillBeSent
	if jsonv2.Unmarshal(text, &e) != nil || e.Request == nil {
		return
	}
	if r.urls == nil || len(r.urls) > maxKept {
		r.urls = map[network.RequestID]string{}
	}
	r.urls[e.RequestID] = printable(e.Request.Method+" "+e.Request.URL, maxName)
}

func (r *Record) keepReceived(text jsonv2.Value) {
	var e network.EventResponseReceived
	if jsonv2.Unmarshal(text, &e) != nil || e.Response == nil || r.urls[e.RequestID] == "" {
		return
	}
	r.add(&r.requests, fmt.Sprintf("%d %s", e.Response.Status, r.urls[e.RequestID]))
	delete(r.urls, e.RequestID)
}

func (r *Record) keepFailed(text jsonv2.Value) {
	var e network.EventLoadingFailed
	if jsonv2.Unmarshal(text, &e) != nil || r.urls[e.RequestID] == "" {
		return
	}
	r.keepRedirect(&e)
	r.add(&r.requests, fmt.Sprintf("failed %s: %s", r.urls[e.RequestID], printable(e.ErrorText, maxName)))
	delete(r.urls, e.RequestID)
}

// Dialogs are the dialogs of a page: alerts, questions, and what asks before leaving.
type Dialogs struct {
	// Wait is how long a dialog waits for an answer before it is dismissed. It is set
	// before the first action.
	Wait time.Duration

	mu      sync.Mutex
	answer  *dialogAnswer
	answers chan dialogAnswer // of the one that is open
	told    []string
	quick   bool // dismiss further dialogs at once
}

type dialogAnswer struct {
	accept bool
	text   string
}

// Answer answers the dialog that is open, or the next one.
func (d *Dialogs) Answer(accept bool, text string) (wasOpen bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answers != nil {
		d.answers <- dialogAnswer{accept, text}
		d.answers = nil
		return true
	}
	d.answer = &dialogAnswer{accept, text}
	return false
}

// Told returns what became of dialogs since the last time, a line each.
func (d *Dialogs) Told() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	told := d.told
	d.told, d.quick = nil, false
	return told
}

// watchDialogs answers every dialog of the page: until then it stops.
func (p *Page) watchDialogs(s *devtools.Session) {
	opened, cancel := s.Subscribe(page.JavascriptDialogOpening.Method)
	go func() {
		defer cancel()
		for {
			select {
			case <-p.left:
				return
			case text, open := <-opened:
				if !open {
					return
				}
				p.answerDialog(s, text)
			}
		}
	}()
}

// maxTold is how many dialogs are told.
const maxTold = 5

// answerDialog waits for the answer to one dialog and gives it.
func (p *Page) answerDialog(s *devtools.Session, text jsonv2.Value) {
	var e page.EventJavascriptDialogOpening
	if jsonv2.Unmarshal(text, &e) != nil {
		e.Type = "unknown"
	}
	d := &p.Dialogs
	answer, how := d.await(p.left)
	d.mu.Lock()
	if len(d.told) < maxTold {
		d.told = append(d.told, fmt.Sprintf("dialog %s %q: %s", strings.Map(wordOnly, string(e.Type)), printable(e.Message, maxName), how))
	}
	d.mu.Unlock()
	_, _ = cdp.Call(context.Background(), s, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: answer.accept, PromptText: answer.text})
}

// await returns the answer to a dialog that has opened, and where it comes from.
func (d *Dialogs) await(left <-chan struct{}) (answer dialogAnswer, how string) {
	d.mu.Lock()
	if d.answer != nil {
		answer, d.answer = *d.answer, nil
		d.mu.Unlock()
		return answer, "answered as was asked for"
	}
	if d.quick || d.Wait == 0 {
		d.mu.Unlock()
		return answer, "dismissed"
	}
	given := make(chan dialogAnswer, 1)
	d.answers = given
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.answers, d.quick = nil, true
		d.mu.Unlock()
	}()
	select {
	case answer = <-given:
		return answer, "answered"
	case <-left:
	case <-time.After(d.Wait):
	}
	return answer, fmt.Sprintf("dismissed after %v; call dialog with accept before the action to accept it", d.Wait)
}
