package browser

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
)

// DownloadDir is where files that pages offer are saved inside, under names of the browser.
const DownloadDir = "/tmp/downloads"

// Limits bound the files that pages offer.
type Limits struct {
	Files int   // of one browser
	Bytes int64 // of one file
}

// Download is a file that a page has offered.
type Download struct {
	ID    string // its name in DownloadDir
	Name  string // as the page named it
	URL   string
	Ended bool
	Why   string // why it was not saved; "" if it was
}

// Downloads are the files that pages of a browser have offered.
type Downloads struct {
	mu     sync.Mutex
	limits Limits
	list   []*Download
	over   int // those that were too many
}

// allowDownloads has files that pages offer saved inside, within limits.
func (b *Browser) allowDownloads(ctx context.Context, l Limits) error {
	root, yes := b.conn.Session(""), true
	begun, _ := root.Subscribe(browser.DownloadWillBegin.Method)
	progress, _ := root.Subscribe(browser.DownloadProgress.Method)
	b.downloads = &Downloads{limits: l}
	go b.watchDownloads(begun, progress)
	_, err := cdp.Call(ctx, root, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: DownloadDir, EventsEnabled: &yes,
	})
	return err
}

// watchDownloads keeps what the browser says of downloads until the connection ends.
func (b *Browser) watchDownloads(begun, progress <-chan jsonv2.Value) {
	for {
		var id string
		select {
		case text, open := <-begun:
			if !open {
				return
			}
			id = b.downloads.begin(text)
		case text, open := <-progress:
			if !open {
				return
			}
			id = b.downloads.advance(text)
		}
		if id != "" {
			_, _ = cdp.Call(context.Background(), b.conn.Session(""), browser.CancelDownload, browser.CancelDownloadParams{GUID: id})
		}
	}
}

// begin keeps a download and returns its id if it must be cancelled.
func (d *Downloads) begin(text jsonv2.Value) (cancel string) {
	var e browser.EventDownloadWillBegin
	if jsonv2.Unmarshal(text, &e) != nil || !isID(e.GUID) {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) >= d.limits.Files {
		d.over++
		return e.GUID
	}
	d.list = append(d.list, &Download{ID: e.GUID, Name: printable(e.SuggestedFilename, maxName), URL: printable(e.URL, maxURL)})
	return ""
}

// advance keeps the state of a download and returns its id if it must be cancelled.
func (d *Downloads) advance(text jsonv2.Value) (cancel string) {
	var e browser.EventDownloadProgress
	if jsonv2.Unmarshal(text, &e) != nil {
		return ""
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.list {
		if x.ID != e.GUID || x.Ended {
			continue
		}
		switch {
		case e.ReceivedBytes > float64(d.limits.Bytes) || e.TotalBytes > float64(d.limits.Bytes):
			x.Ended, x.Why = true, "it is larger than sandbox.browser.downloads.maxBytes"
			return x.ID
		case e.State == browser.DownloadProgressStateCompleted:
			x.Ended = true
		case e.State == browser.DownloadProgressStateCanceled:
			x.Ended, x.Why = true, "it was cancelled"
		}
	}
	return ""
}

// Take returns the downloads that have ended since the last time, and how many were too
// many in all.
func (d *Downloads) Take(taken map[string]bool) (ended []Download, over int) {
	if d == nil {
		return nil, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.list {
		if x.Ended && !taken[x.ID] {
			taken[x.ID] = true
			ended = append(ended, *x)
		}
	}
	return ended, d.over
}

// Downloads returns the files that pages have offered; nil if they are refused, or another
// process has them.
func (b *Browser) Downloads() *Downloads { return b.downloads }
