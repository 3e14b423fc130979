package actions

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool"
)

// call is one call on its way.
type call struct {
	driver  *Driver
	args    *tool.BrowserArgs
	options Options
	end     func() // ends the action of the agent

	page    *page
	notes   []string // of ours
	content string   // of the page
	images  []tool.Image
}

func (c *call) note(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// steps are what the actions do that work on a page.
var steps = map[tool.BrowserAction]func(*call, context.Context) error{
	tool.BrowserNavigate: (*call).navigate, tool.BrowserBack: (*call).back, tool.BrowserReload: (*call).reload,
	tool.BrowserSnapshot: (*call).snapshot, tool.BrowserText: (*call).text, tool.BrowserWait: (*call).wait, tool.BrowserScreenshot: (*call).screenshot, tool.BrowserPDF: (*call).pdf,
	tool.BrowserConsole: (*call).records, tool.BrowserRequests: (*call).records, tool.BrowserErrors: (*call).records,
	tool.BrowserFocus: (*call).focus, tool.BrowserClose: (*call).closeTab, tool.BrowserDialog: (*call).dialog,
	tool.BrowserEvaluate: (*call).evaluate, tool.BrowserUpload: (*call).upload, tool.BrowserHandover: (*call).handover,
	tool.BrowserClick: (*call).act, tool.BrowserType: (*call).act, tool.BrowserFill: (*call).act, tool.BrowserSelect: (*call).act, tool.BrowserPress: (*call).act,
	tool.BrowserHover: (*call).act, tool.BrowserDrag: (*call).act, tool.BrowserScroll: (*call).act,
}

// run carries the call out. A person who is waited for has longer than the rest.
func (c *call) run(waiting, ctx context.Context) error {
	if c.args.Action == tool.BrowserEvaluate && !c.options.Evaluate {
		return errhint.With(fmt.Errorf("scripts are switched off"), "set sandbox.browser.evaluate to true, or use snapshot, text and click")
	}
	if (c.args.Action == tool.BrowserOpen || c.args.Action == tool.BrowserNavigate) && c.args.URL != "" {
		if err := browser.CheckURL(c.args.URL); err != nil {
			return err
		}
	}
	why, err := c.driver.ready(ctx)
	if err != nil {
		return err
	}
	if why != nil {
		c.note("the browser was started again, its tabs are gone: %.300s", why)
	}
	switch c.args.Action {
	case tool.BrowserOpen:
		return c.open(ctx)
	case tool.BrowserTabs:
		return c.tabs(ctx)
	case tool.BrowserDownloads:
		return c.downloads(ctx)
	case tool.BrowserHandover:
		ctx = waiting
	}
	return c.onPage(ctx)
}

// onPage does what works on a page, and looks at what came of it.
func (c *call) onPage(ctx context.Context) (err error) {
	if c.page, err = c.driver.page(ctx, c.args.Tab); err != nil {
		return err
	}
	before, err := c.driver.running.Tabs(ctx)
	if err != nil {
		return err
	}
	err = steps[c.args.Action](c, ctx)
	c.look(ctx, before)
	return err
}

// look notes new tabs, dialogs, downloads and what egress refused, and closes tabs that
// are too many or show what is not the web.
func (c *call) look(ctx context.Context, before []browser.Tab) {
	d := c.driver
	known := make([]string, 0, len(before))
	for _, t := range before {
		known = append(known, t.ID)
	}
	if closed, err := d.running.CloseExcess(ctx, known); err == nil && closed > 0 {
		c.note("%d tabs were closed: at most %d are open", closed, d.running.MaxTabs())
	}
	after, _ := d.running.Tabs(ctx)
	for _, t := range after {
		switch {
		case !browser.IsWeb(t.URL):
			c.note("tab %s showed what is not the web and was closed: %.100q", d.name(t.ID), t.URL)
			_ = d.running.CloseTab(ctx, t.ID)
		case !slices.Contains(known, t.ID):
			c.note("new tab %s: %s", d.name(t.ID), quoted(t.URL))
		}
	}
	if c.page != nil {
		c.notes = append(c.notes, c.page.Dialogs.Told()...)
	}
	for _, line := range d.source.Denials() {
		c.note("refused by policy: %s", strings.TrimPrefix(line, "egress: "))
	}
	for _, line := range d.running.Refused() {
		c.note("refused, because it is not the web: %s", quoted(line))
	}
	c.noteDownloads(ctx)
}

// quoted is a short text of a page in one line.
func quoted(text string) string { return fmt.Sprintf("%.300q", text) }

// state notes where the page is.
func (c *call) state(ctx context.Context) error {
	s, err := c.page.State(ctx)
	if err != nil {
		return err
	}
	c.note("tab %s: %s, title %s", c.driver.name(c.page.ID), quoted(s.URL), quoted(s.Title))
	return nil
}
