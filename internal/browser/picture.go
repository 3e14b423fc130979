package browser

import (
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/page"

	"github.com/atoll-run/atoll/internal/errhint"
)

// maxPicture is the largest picture for a model.
const maxPicture = 2 << 20

// maxBands is how many pictures show one page.
const maxBands = 4

// Picture returns a JPEG picture of at most 2 MB of what is seen of the page, or of an
// element.
func (p *Page) Picture(ctx context.Context, ref string) ([]byte, error) {
	if ref == "" {
		return p.capture(ctx, nil)
	}
	clip, err := p.clipOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	return p.capture(ctx, clip)
}

// Bands returns pictures of all of the page, from the top: one, or several where it is too
// high for one. left is how many pixels of its height are on none.
func (p *Page) Bands(ctx context.Context) (pictures [][]byte, left int, err error) {
	height, err := p.height(ctx)
	if err != nil {
		return nil, 0, err
	}
	for y := 0.0; y < height && len(pictures) < maxBands; y += maxHeight {
		taken, err := p.capture(ctx, &page.Viewport{Y: y, Width: Width, Height: min(height-y, maxHeight), Scale: 1})
		if err != nil {
			return nil, 0, err
		}
		pictures = append(pictures, taken)
	}
	return pictures, int(min(max(height-maxBands*maxHeight, 0), 1<<30)), nil
}

// capture takes a picture of a part of the page; nil is what is seen of it.
func (p *Page) capture(ctx context.Context, clip *page.Viewport) ([]byte, error) {
	beyond := clip != nil
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatJpeg, CaptureBeyondViewport: &beyond, Clip: clip}
	for _, quality := range []int64{75, 40, 15} {
		params.Quality = &quality
		taken, err := cdp.Call(ctx, p.session, page.CaptureScreenshot, params)
		if err != nil {
			return nil, fmt.Errorf("take a picture of the page: %w", err)
		}
		if len(taken.Data) <= maxPicture {
			return taken.Data, nil
		}
	}
	return nil, errhint.With(errors.New("the picture has more than 2 MB"), "take one of an element, or without fullPage")
}

// wholeClip is all of the page, of which the lower part is left out if it is too high.
func (p *Page) wholeClip(ctx context.Context) (*page.Viewport, error) {
	height, err := p.height(ctx)
	return &page.Viewport{Width: Width, Height: min(height, maxHeight), Scale: 1}, err
}

// height is that of the whole page.
func (p *Page) height(ctx context.Context) (float64, error) {
	metrics, err := cdp.Call(ctx, p.session, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return 0, err
	}
	if metrics.CSSContentSize == nil {
		return 0, errors.New("the browser does not say how large the page is")
	}
	return max(metrics.CSSContentSize.Height, 1), nil
}

// clipOf is the place of an element on the page.
func (p *Page) clipOf(ctx context.Context, ref string) (*page.Viewport, error) {
	e, err := p.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	box, err := cdp.Call(ctx, e.session, dom.GetBoxModel, dom.GetBoxModelParams{BackendNodeID: e.node})
	if err != nil || box.Model == nil || len(box.Model.Border) != 8 {
		return nil, errhint.With(fmt.Errorf("%s has no place on the page", ref), "take a new snapshot")
	}
	metrics, err := cdp.Call(ctx, p.session, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil || metrics.CSSVisualViewport == nil {
		return nil, errors.New("the browser does not say where the page is")
	}
	q, v := box.Model.Border, metrics.CSSVisualViewport
	x, y := q[0]+v.PageX, q[1]+v.PageY
	return &page.Viewport{X: x, Y: y, Width: min(max(q[2]-q[0], 1), Width), Height: min(max(q[5]-q[1], 1), maxHeight), Scale: 1}, nil
}
