package browser

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
)

const (
	// maxLabels is how many elements are marked on a picture.
	maxLabels = 100
	// maxPixels bounds the side of a picture that is drawn on.
	maxPixels = 8192
	// labelQuality is that of a picture with labels.
	labelQuality = 75
	// dot is how large one dot of a letter is.
	dot = 2
)

// Labelled returns a JPEG picture of what is seen of the page, on which the elements that
// can be used have a frame and their ref, and how many they are.
func (p *Page) Labelled(ctx context.Context) ([]byte, int, error) {
	if _, err := p.Aria(ctx, AriaOptions{}); err != nil {
		return nil, 0, err
	}
	data, err := p.Picture(ctx, "")
	if err != nil {
		return nil, 0, err
	}
	size, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil || max(size.Width, size.Height) > maxPixels {
		return nil, 0, errors.New("what the browser sent is no picture")
	}
	taken, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, 0, errors.New("what the browser sent is no picture")
	}
	drawn := image.NewRGBA(taken.Bounds())
	draw.Draw(drawn, drawn.Bounds(), taken, taken.Bounds().Min, draw.Src)
	number := p.label(ctx, drawn)
	var out bytes.Buffer
	err = jpeg.Encode(&out, drawn, &jpeg.Options{Quality: labelQuality})
	return out.Bytes(), number, err
}

// label marks the elements that are seen, and returns how many they are.
func (p *Page) label(ctx context.Context, on *image.RGBA) (number int) {
	for _, name := range p.refs.usable {
		e := p.refs.elements[name]
		if e.session != p.session || number == maxLabels {
			continue
		}
		box, err := cdp.Call(ctx, e.session, dom.GetBoxModel, dom.GetBoxModelParams{BackendNodeID: e.node})
		if err != nil || box.Model == nil || len(box.Model.Border) != 8 {
			continue
		}
		if at := rectangle(box.Model.Border).Intersect(on.Bounds()); at.Dx() > dot && at.Dy() > dot {
			frame(on, at)
			write(on, at.Min, name)
			number++
		}
	}
	return number
}

// rectangle is the smallest one around four corners, within bounds that pictures have.
func rectangle(q dom.Quad) image.Rectangle {
	whole := func(x float64) int { return int(min(max(x, -1), maxPixels)) }
	return image.Rect(
		whole(min(q[0], q[2], q[4], q[6])), whole(min(q[1], q[3], q[5], q[7])),
		whole(max(q[0], q[2], q[4], q[6])), whole(max(q[1], q[3], q[5], q[7])))
}

var (
	labelColour = image.NewUniform(color.RGBA{R: 0xd0, G: 0x10, B: 0x50, A: 0xff})
	labelText   = image.NewUniform(color.White)
)

// frame draws the border of a rectangle.
func frame(on *image.RGBA, at image.Rectangle) {
	for _, side := range []image.Rectangle{
		image.Rect(at.Min.X, at.Min.Y, at.Max.X, at.Min.Y+dot), image.Rect(at.Min.X, at.Max.Y-dot, at.Max.X, at.Max.Y),
		image.Rect(at.Min.X, at.Min.Y, at.Min.X+dot, at.Max.Y), image.Rect(at.Max.X-dot, at.Min.Y, at.Max.X, at.Max.Y),
	} {
		draw.Draw(on, side, labelColour, image.Point{}, draw.Src)
	}
}

// write writes a ref on a ground of its own: left of a place, or on it where there is no
// room.
func write(on *image.RGBA, at image.Point, name string) {
	width := (6*len(name) + 1) * dot
	if at.X >= width {
		at.X -= width
	}
	draw.Draw(on, image.Rect(at.X, at.Y, at.X+width, at.Y+9*dot), labelColour, image.Point{}, draw.Src)
	for i := range len(name) {
		for row, bits := range letters[name[i]] {
			for column := range 5 {
				if bits>>(4-column)&1 == 1 {
					x, y := at.X+(6*i+1+column)*dot, at.Y+(1+row)*dot
					draw.Draw(on, image.Rect(x, y, x+dot, y+dot), labelText, image.Point{}, draw.Src)
				}
			}
		}
	}
}

// letters are those of refs, five dots wide and seven high.
var letters = map[byte][7]byte{
	'e': {0, 0, 0b01110, 0b10001, 0b11111, 0b10000, 0b01110},
	'0': {0b01110, 0b10001, 0b10011, 0b10101, 0b11001, 0b10001, 0b01110},
	'1': {0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110},
	'2': {0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111},
	'3': {0b11111, 0b00010, 0b00100, 0b00010, 0b00001, 0b10001, 0b01110},
	'4': {0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010},
	'5': {0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110},
	'6': {0b00110, 0b01000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110},
	'7': {0b11111, 0b00001, 0b00010, 0b00100, 0b01000, 0b01000, 0b01000},
	'8': {0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110},
	'9': {0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00010, 0b01100},
}
