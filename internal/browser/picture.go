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

// Picture returns a JPEG picture of at most 2 MB of what is seen of the page, of all of
// it, or of an element.
func (p *Page) Picture(ctx context.Context, whole bool, ref string) ([]byte, error) {
	beyond := whole || ref != ""
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatJpeg, CaptureBeyondViewport: &beyond}
	var err error
	switch {
	case ref != "":
		params.Clip, err = p.clipOf(ctx, ref)
	case whole:
		params.Clip, err = p.wholeClip(ctx)
	}
	if err != nil {
		return nil, err
	}
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
	metrics, err := cdp.Call(ctx, p.session, page.GetLayoutMetrics, cdp.Empty{})
	if err != nil {
		return nil, err
	}
	if metrics.CSSContentSize == nil {
		return nil, errors.New("the browser does not say how large the page is")
	}
	return &page.Viewport{Width: Width, Height: min(max(metrics.CSSContentSize.Height, 1), maxHeight), Scale: 1}, nil
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
