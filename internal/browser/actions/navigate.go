package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/errhint"
)

// open opens an address in a new tab; an empty tab that nothing has used is taken first.
func (c *call) open(ctx context.Context) error {
	d := c.driver
	before, err := d.running.Tabs(ctx)
	if err != nil {
		return err
	}
	if len(before) == 1 && before[0].URL == "about:blank" && d.pages[before[0].ID] == nil {
		if c.page, err = d.page(ctx, before[0].ID); err != nil {
			return err
		}
	} else {
		made, err := d.running.NewPage(ctx)
		if err != nil {
			return err
		}
		c.page = d.keep(made)
		before = append(before, browser.Tab{ID: made.ID})
	}
	err = c.navigate(ctx)
	c.look(ctx, before)
	return err
}

// navigate opens an address in the tab.
func (c *call) navigate(ctx context.Context) error {
	state, err := c.page.Navigate(ctx, c.args.URL)
	if err != nil {
		return err
	}
	if state.Loading {
		c.note("the page had not loaded when its time was over")
	}
	return c.show(ctx, browser.AriaOptions{})
}

func (c *call) back(ctx context.Context) error {
	if err := c.page.Settle(ctx, func() error { return c.page.Back(ctx) }); err != nil {
		return err
	}
	return c.show(ctx, browser.AriaOptions{})
}

func (c *call) reload(ctx context.Context) error {
	if err := c.page.Settle(ctx, func() error { return c.page.Reload(ctx) }); err != nil {
		return err
	}
	return c.show(ctx, browser.AriaOptions{})
}

// snapshot shows the page as it was asked for.
func (c *call) snapshot(ctx context.Context) error {
	return c.show(ctx, browser.AriaOptions{
		Interactive: c.args.Interactive, Depth: int(c.args.Depth), Query: c.args.Query, MaxBytes: int(c.args.MaxChars),
	})
}

// show shows the page with refs, and says what was left out.
func (c *call) show(ctx context.Context, o browser.AriaOptions) error {
	seen, err := c.page.Aria(ctx, o)
	if err != nil {
		return err
	}
	if o == (browser.AriaOptions{}) {
		c.page.seen = seen
	}
	c.content = seen.Text
	if left := seen.Lines - seen.Shown; left > 0 {
		c.note("%d of %d lines are not shown: use query, interactive or depth, or text", left, seen.Lines)
	}
	return c.state(ctx)
}

// wait waits for a text, an address or a time.
func (c *call) wait(ctx context.Context) error {
	a := c.args
	limit := time.Duration(a.Ms) * time.Millisecond
	if a.Text == "" && a.TextGone == "" && a.URL == "" {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(limit):
		}
		return c.changes(ctx)
	}
	if limit == 0 {
		limit = defaultWait
	}
	deadline := time.Now().Add(limit)
	for !c.isThere(ctx) {
		if time.Now().After(deadline) {
			return errhint.With(fmt.Errorf("it did not happen within %v", limit), "take a snapshot to see what the page shows")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitEvery):
		}
	}
	return c.changes(ctx)
}

const (
	// defaultWait is how long wait waits if no time is given, waitEvery the pause between looks.
	defaultWait = 10 * time.Second
	waitEvery   = 100 * time.Millisecond
)

// isThere reports whether what is waited for has happened.
func (c *call) isThere(ctx context.Context) bool {
	a := c.args
	if a.URL != "" {
		if s, err := c.page.State(ctx); err != nil || !strings.Contains(s.URL, a.URL) {
			return false
		}
	}
	if a.Text == "" && a.TextGone == "" {
		return true
	}
	text, err := c.page.Text(ctx, "", "")
	return err == nil && strings.Contains(text, a.Text) && (a.TextGone == "" || !strings.Contains(text, a.TextGone))
}

// evaluate runs a script of the model in the page.
func (c *call) evaluate(ctx context.Context) error {
	script := c.args.Expression
	if strings.HasPrefix(strings.TrimSpace(script), "(") && strings.Contains(script, "=>") || strings.HasPrefix(strings.TrimSpace(script), "function") {
		script = "(" + script + ")()" // as OpenClaw's fn
	}
	err := c.page.Settle(ctx, func() (err error) {
		c.content, err = c.page.Evaluate(ctx, script, browser.MaxSnapshot)
		return err
	})
	if err == nil && json.Valid([]byte(c.content)) {
		c.note("the value as JSON:")
	}
	return err
}
