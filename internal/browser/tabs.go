package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/atoll-run/atoll/internal/errhint"
)

const (
	// MaxTabs is how many tabs a browser has where sandbox.browser.tabs says nothing; pages
	// that open more lose them.
	MaxTabs = 20
	// blank is the address of an empty page.
	blank = "about:blank"
	// maxID bounds the id of a tab.
	maxID = 64
)

// Tab is one tab of a browser.
type Tab struct {
	ID     string `json:"id"`
	URL    string `json:"url"`
	Title  string `json:"title"`
	Opener string `json:"opener,omitempty"` // the tab whose page opened it
}

// Tabs lists the tabs.
func (b *Browser) Tabs(ctx context.Context) (tabs []Tab, err error) {
	found, err := cdp.Call(ctx, b.conn.Session(""), target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return nil, err
	}
	for _, t := range found.TargetInfos {
		if t == nil || t.Type != "page" || !isID(string(t.TargetID)) || isPartOfWindow(t.URL) {
			continue
		}
		tab := Tab{ID: string(t.TargetID), URL: printable(t.URL, maxURL), Title: printable(t.Title, maxName)}
		if isID(string(t.OpenerID)) {
			tab.Opener = string(t.OpenerID)
		}
		tabs = append(tabs, tab)
	}
	return tabs, nil
}

// isPartOfWindow reports whether a target is a part of Chromium's window, such as what
// drops down from its address bar. No page can have such an address.
func isPartOfWindow(url string) bool {
	host, ok := strings.CutPrefix(url, "chrome://")
	host, _, _ = strings.Cut(host, "/")
	return ok && strings.HasSuffix(host, ".top-chrome")
}

// isID reports whether a text is what browsers name tabs by.
func isID(text string) bool {
	if text == "" || len(text) > maxID {
		return false
	}
	for _, r := range text {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '-' {
			return false
		}
	}
	return true
}

// MaxTabs returns how many tabs the browser has at most.
func (b *Browser) MaxTabs() int { return b.tabs }

// checkRoom refuses a further tab where there are as many as may be.
func (b *Browser) checkRoom(ctx context.Context) error {
	tabs, err := b.Tabs(ctx)
	if err == nil && len(tabs) >= b.tabs {
		return errhint.With(fmt.Errorf("%d tabs are open, and more are not allowed", len(tabs)), "close one first, or raise sandbox.browser.tabs")
	}
	return err
}

// CloseExcess closes tabs that are not among the known ones until as many as may be are left, and
// returns how many it closed.
func (b *Browser) CloseExcess(ctx context.Context, known []string) (closed int, err error) {
	tabs, err := b.Tabs(ctx)
	if err != nil {
		return 0, err
	}
	excess := len(tabs) - b.tabs
	for _, tab := range tabs {
		if closed >= excess || slices.Contains(known, tab.ID) {
			continue
		}
		if err := b.CloseTab(ctx, tab.ID); err != nil {
			return closed, err
		}
		closed++
	}
	return closed, nil
}

// FocusTab brings a tab to the front.
func (b *Browser) FocusTab(ctx context.Context, id string) error {
	_, err := cdp.Call(ctx, b.conn.Session(""), target.ActivateTarget, target.ActivateTargetParams{TargetID: target.ID(id)})
	return err
}

// CloseTab closes a tab.
func (b *Browser) CloseTab(ctx context.Context, id string) error {
	_, err := cdp.Call(ctx, b.conn.Session(""), target.CloseTarget, target.CloseTargetParams{TargetID: target.ID(id)})
	return err
}
