package actions

import (
	"context"
	"strings"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/tool"
)

// act does something to the page as a person would, and shows what it changed.
func (c *call) act(ctx context.Context) error {
	if c.page.seen == nil {
		c.page.seen, _ = c.page.Aria(ctx, browser.AriaOptions{})
	}
	if err := c.page.Settle(ctx, func() error { return c.input(ctx) }); err != nil {
		return err
	}
	return c.changes(ctx)
}

// input sends the input of an action.
func (c *call) input(ctx context.Context) error {
	a, p := c.args, c.page
	at := browser.Place{Ref: a.Ref, X: a.X, Y: a.Y}
	switch a.Action {
	case tool.BrowserClick:
		return p.Click(ctx, at, a.Button, a.Double)
	case tool.BrowserHover:
		return p.Hover(ctx, at)
	case tool.BrowserDrag:
		return p.Drag(ctx, browser.Place{Ref: a.Ref}, browser.Place{Ref: a.To})
	case tool.BrowserScroll:
		return p.Scroll(ctx, a.Ref, a.X, a.Y)
	case tool.BrowserSelect:
		return p.Select(ctx, a.Ref, a.Values)
	case tool.BrowserPress:
		return p.Press(ctx, a.Key)
	}
	return c.write(ctx)
}

// write types or fills, and submits if that is wanted.
func (c *call) write(ctx context.Context) error {
	a, p := c.args, c.page
	if a.Action == tool.BrowserType {
		if err := p.Type(ctx, a.Ref, a.Text, false); err != nil {
			return err
		}
	} else {
		fields := a.Fields
		if a.Ref != "" {
			fields = append(fields, tool.BrowserField{Ref: a.Ref, Text: a.Text})
		}
		for _, f := range fields {
			if err := p.Fill(ctx, f.Ref, f.Text); err != nil {
				return err
			}
		}
	}
	if a.Submit {
		return p.Press(ctx, "Enter")
	}
	return nil
}

// changes shows the page if it is another one now, else the lines that are new.
func (c *call) changes(ctx context.Context) error {
	before := c.page.seen
	if err := c.show(ctx, browser.AriaOptions{}); err != nil {
		return err
	}
	after := c.page.seen
	if before == nil || after == nil || before.Document != after.Document {
		return nil
	}
	added, gone := difference(before.Text, after.Text)
	c.content = strings.Join(added, "")
	c.note("the same page: %d lines are new or changed, %d are gone", len(added), gone)
	return nil
}

// difference returns the lines of a text that another does not have, and how many of the
// other are gone.
func difference(before, after string) (added []string, gone int) {
	had := map[string]int{}
	for line := range strings.Lines(before) {
		had[line]++
		gone++
	}
	for line := range strings.Lines(after) {
		if had[line] > 0 {
			had[line]--
			gone--
			continue
		}
		added = append(added, line)
	}
	return added, gone
}
