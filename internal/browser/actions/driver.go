// Package actions carries out the calls of the tool browser on the pages of a running
// browser, and tells what they changed.
package actions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/browser/driver"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool"
)

const (
	// callTimeout bounds one call.
	callTimeout = 90 * time.Second
	// dialogWait is how long a dialog waits for an answer.
	dialogWait = 5 * time.Second
)

// Running is a browser and what is to be known of it.
type Running struct {
	*browser.Browser
	Number int   // another number is another browser: nothing of the last one is left
	Why    error // why the last one ended; nil if there was none
}

// Source has the browser of a session.
type Source interface {
	// Running returns the browser, which is started if it does not run.
	Running(ctx context.Context) (*Running, error)
	// Denials returns what egress refused since the last time, a line each.
	Denials() []string
	// Stop ends the browser.
	Stop() error
}

// Options say what the tool may do.
type Options struct {
	Evaluate bool // scripts of the model run in pages
	Files    Files
	Handover Handover
}

// Driver is the use of one browser by a tool. One call works at a time.
type Driver struct {
	source  Source
	drivers *driver.Drivers
	sandbox string      // its name
	asked   atomic.Bool // a person was asked to go on

	mu      sync.Mutex // held while a call works
	running *Running
	pages   map[string]*page // by the id of the tab
	names   map[string]string
	last    int    // the number of the last tab
	current string // the id of the tab used last
}

// page is a tab that the tool has used.
type page struct {
	*browser.Page
	seen *browser.Aria // what was shown last
}

// NewDriver returns the use of the browser of a sandbox.
func NewDriver(s Source, d *driver.Drivers, sandbox string) *Driver {
	return &Driver{source: s, drivers: d, sandbox: sandbox}
}

// Do carries out one call.
func (d *Driver) Do(ctx context.Context, a *tool.BrowserArgs, o Options) (*tool.Result, error) {
	if d.asked.Load() {
		return nil, driver.ErrPerson
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	end, err := d.drivers.Act(d.sandbox)
	if err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := &call{driver: d, args: a, options: o, end: end}
	defer func() { c.end() }()
	err = c.run(ctx, within)
	if err != nil {
		err = d.explain(ctx, err)
	}
	return c.result(err), ctx.Err()
}

// explain returns an error for the model; a browser that does not answer any more is ended.
func (d *Driver) explain(ctx context.Context, err error) error {
	text, hint := err.Error(), errhint.Of(err)
	if d.running != nil && ctx.Err() == nil && (d.running.Err() != nil || errors.Is(err, context.DeadlineExceeded)) {
		if failed := d.running.Check(ctx); failed != nil {
			text = fmt.Sprintf("%s; %s", text, failed)
			hint = "the next call starts the browser again"
			_ = d.source.Stop()
		}
	}
	return errhint.With(errors.New(strings.ToValidUTF8(text, "")), hint)
}

// ready has the browser running, and forgets what was known of another.
func (d *Driver) ready(ctx context.Context) (why error, err error) {
	r, err := d.source.Running(ctx)
	if err != nil {
		return nil, err
	}
	if d.running == nil || d.running.Number != r.Number {
		d.forget()
		why = r.Why
	}
	d.running = r
	return why, nil
}

// forget drops what was known of tabs.
func (d *Driver) forget() {
	for _, p := range d.pages {
		p.Leave()
	}
	d.pages, d.names, d.current = map[string]*page{}, map[string]string{}, ""
}

// name returns the name of a tab, which it keeps.
func (d *Driver) name(id string) string {
	if name, ok := d.names[id]; ok {
		return name
	}
	d.last++
	d.names[id] = fmt.Sprintf("t%d", d.last)
	return d.names[id]
}

// tab returns the id of a tab by its name; "" is the one used last.
func (d *Driver) tab(ctx context.Context, name string) (string, error) {
	tabs, err := d.running.Tabs(ctx)
	if err != nil {
		return "", err
	}
	for _, t := range tabs {
		if name != "" && (d.name(t.ID) == name || t.ID == name) || name == "" && t.ID == d.current {
			return t.ID, nil
		}
	}
	switch {
	case name != "":
		return "", errhint.With(fmt.Errorf("there is no tab %.20q", name), "the action tabs lists them")
	case len(tabs) > 0:
		return tabs[0].ID, nil
	}
	return "", errhint.With(errors.New("no page is open"), "open one with the action open")
}

// page returns the page of a tab.
func (d *Driver) page(ctx context.Context, name string) (*page, error) {
	id, err := d.tab(ctx, name)
	if err != nil {
		return nil, err
	}
	d.current = id
	if p := d.pages[id]; p != nil {
		return p, nil
	}
	attached, err := d.running.Page(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.keep(attached), nil
}

func (d *Driver) keep(attached *browser.Page) *page {
	attached.Dialogs.Wait = dialogWait
	p := &page{Page: attached}
	d.pages[attached.ID], d.current = p, attached.ID
	return p
}
