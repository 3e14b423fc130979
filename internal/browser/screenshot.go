package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
)

// maxHeight is the height of the largest picture of a page: a browser needs longer and
// longer for larger ones, and then does not end.
const maxHeight = 8000

// pngHead is what a PNG file begins with.
var pngHead = []byte("\x89PNG\r\n\x1a\n")

// Screenshot returns a PNG picture of what is seen of the page, or of all of it, of which
// the lower part is left out if it is too high.
func (p *Page) Screenshot(ctx context.Context, whole bool) ([]byte, error) {
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng}
	if whole {
		clip, err := p.wholeClip(ctx)
		if err != nil {
			return nil, err
		}
		beyond := true
		params.CaptureBeyondViewport, params.Clip = &beyond, clip
	}
	taken, err := cdp.Call(ctx, p.session, page.CaptureScreenshot, params)
	if err != nil {
		return nil, fmt.Errorf("take a picture of the page: %w", err)
	}
	if !bytes.HasPrefix(taken.Data, pngHead) {
		return nil, errors.New("what the browser sent is no PNG picture")
	}
	return taken.Data, nil
}
