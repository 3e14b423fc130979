package actions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // for the size of a picture
	"strings"

	"github.com/atoll-run/atoll/internal/browser"
	"github.com/atoll-run/atoll/internal/tool"
)

// maxText is how much of a page's text is shown.
const maxText = 50_000

// text shows the text of the page.
func (c *call) text(ctx context.Context) error {
	found, err := c.page.Text(ctx, c.args.Ref, c.args.Selector)
	if err != nil {
		return err
	}
	most := int(c.args.MaxChars)
	if most == 0 || most > maxText {
		most = browser.MaxSnapshot
	}
	if len(found) > most {
		c.note("%d of %d bytes are not shown: use maxChars or selector", len(found)-most, len(found))
		found = strings.ToValidUTF8(found[:most], "")
	}
	c.content = browser.Clean(found)
	return c.state(ctx)
}

// screenshot takes pictures for the model: one, or several of a page that is too high.
func (c *call) screenshot(ctx context.Context) error {
	pictures, err := c.pictures(ctx)
	if err != nil {
		return err
	}
	for _, data := range pictures {
		if err := c.addPicture(ctx, data); err != nil {
			return err
		}
	}
	return c.state(ctx)
}

// pictures takes what is asked for.
func (c *call) pictures(ctx context.Context) ([][]byte, error) {
	switch a := c.args; {
	case a.FullPage && a.Ref == "":
		bands, left, err := c.page.Bands(ctx)
		if len(bands) > 1 {
			c.note("the page is on %d pictures, from the top", len(bands))
		}
		if left > 0 {
			c.note("%d pixels of its height are on none: scroll, or use text", left)
		}
		return bands, err
	case a.Labels && a.Ref == "":
		data, number, err := c.page.Labelled(ctx)
		c.note("%d elements have their refs on the picture", number)
		return [][]byte{data}, err
	}
	data, err := c.page.Picture(ctx, c.args.Ref)
	return [][]byte{data}, err
}

// addPicture gives a picture to the model, and puts it into the workspace.
func (c *call) addPicture(ctx context.Context, data []byte) error {
	size, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || format != "jpeg" {
		return errors.New("what the browser sent is no picture")
	}
	c.images = append(c.images, tool.Image{MediaType: "image/jpeg", Data: data, Width: size.Width, Height: size.Height})
	c.note("a picture of %d×%d pixels, %d bytes", size.Width, size.Height, len(data))
	if path, err := c.save(ctx, "screenshot.jpg", data); err == nil && path != "" {
		c.note("file: %s", path)
	}
	return nil
}

// pdf prints the page into a file of the workspace.
func (c *call) pdf(ctx context.Context) error {
	data, err := c.page.PDF(ctx)
	if err != nil {
		return err
	}
	path, err := c.save(ctx, "page.pdf", data)
	if err != nil {
		return err
	}
	c.note("a PDF of %d bytes: %s", len(data), path)
	return c.state(ctx)
}

// records shows what the page has said, failed with or asked for.
func (c *call) records(context.Context) error {
	var kept []string
	for _, line := range c.page.Record.Lines(string(c.args.Action), c.args.Clear) {
		if strings.Contains(strings.ToLower(line), strings.ToLower(c.args.Filter)) {
			kept = append(kept, line)
		}
	}
	most := int(c.args.Limit)
	if most == 0 {
		most = 50
	}
	if left := len(kept) - most; left > 0 {
		c.note("%d earlier lines are not shown: use limit", left)
		kept = kept[left:]
	}
	c.note("%d lines", len(kept))
	c.content = strings.Join(kept, "\n")
	return nil
}

// tabs lists the tabs.
func (c *call) tabs(ctx context.Context) error {
	tabs, err := c.driver.running.Tabs(ctx)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, t := range tabs {
		mark := " "
		if t.ID == c.driver.current {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %s %s %s\n", mark, c.driver.name(t.ID), quoted(t.URL), quoted(t.Title))
	}
	c.note("%d tabs, at most %d", len(tabs), c.driver.running.MaxTabs())
	c.content = b.String()
	return nil
}

func (c *call) focus(ctx context.Context) error {
	if err := c.driver.running.FocusTab(ctx, c.page.ID); err != nil {
		return err
	}
	return c.state(ctx)
}

// closeTab closes the tab; the one used last is another then.
func (c *call) closeTab(ctx context.Context) error {
	d, id := c.driver, c.page.ID
	if err := d.running.CloseTab(ctx, id); err != nil {
		return err
	}
	c.page.Leave()
	delete(d.pages, id)
	c.note("closed: %s", d.name(id))
	c.page, d.current = nil, ""
	return nil
}

// dialog answers the dialog that is open, or the next one.
func (c *call) dialog(context.Context) error {
	if c.page.Dialogs.Answer(c.args.Accept, c.args.Text) {
		c.note("the dialog was answered")
	} else {
		c.note("the next dialog of this tab is answered with accept=%v", c.args.Accept)
	}
	return nil
}
