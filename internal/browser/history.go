package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Back goes to the page before this one.
func (p *Page) Back(ctx context.Context) error {
	h, err := cdp.Call(ctx, p.session, page.GetNavigationHistory, cdp.Empty{})
	if err != nil {
		return err
	}
	at := h.CurrentIndex - 1
	if at < 0 || at >= int64(len(h.Entries)) || h.Entries[at] == nil {
		return errors.New("there is no page before this one")
	}
	if err := CheckURL(h.Entries[at].URL); err != nil {
		return err
	}
	_, err = cdp.Call(ctx, p.session, page.NavigateToHistoryEntry, page.NavigateToHistoryEntryParams{EntryID: h.Entries[at].ID})
	return err
}

// Reload loads the page again.
func (p *Page) Reload(ctx context.Context) error {
	_, err := cdp.Call(ctx, p.session, page.Reload, page.ReloadParams{})
	return err
}

// maxPDF is the largest PDF of a page.
const maxPDF = 16 << 20

// PDF prints the page.
func (p *Page) PDF(ctx context.Context) ([]byte, error) {
	yes := true
	made, err := cdp.Call(ctx, p.session, page.PrintToPDF, page.PrintToPDFParams{PrintBackground: &yes})
	switch {
	case err != nil:
		return nil, fmt.Errorf("print the page: %w", err)
	case !bytes.HasPrefix(made.Data, []byte("%PDF-")):
		return nil, errors.New("what the browser sent is no PDF")
	case len(made.Data) > maxPDF:
		return nil, fmt.Errorf("the PDF has %d bytes, over the limit of %d", len(made.Data), maxPDF)
	}
	return made.Data, nil
}

// SetFiles has an element take files of the browser's sandbox.
func (p *Page) SetFiles(ctx context.Context, ref string, paths []string) error {
	e, err := p.find(ctx, ref)
	if err != nil {
		return err
	}
	if _, err := cdp.Call(ctx, e.session, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, BackendNodeID: e.node}); err != nil {
		return errhint.With(fmt.Errorf("%s takes no files: %w", ref, err), "choose the button that opens a file chooser")
	}
	return nil
}
