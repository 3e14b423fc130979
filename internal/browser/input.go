package browser

import (
	"context"
	"errors"
	"fmt"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Place is where the mouse goes: an element, or a point of what is seen of the page.
type Place struct {
	Ref  string
	X, Y float64
}

func (p *Page) place(ctx context.Context, at Place) (point, error) {
	if at.Ref != "" {
		return p.pointOf(ctx, at.Ref)
	}
	if at.X < 0 || at.Y < 0 || at.X > Width || at.Y > Height {
		return point{}, errhint.With(fmt.Errorf("%g,%g is outside of the page", at.X, at.Y), fmt.Sprintf("what is seen of it is %d by %d pixels: scroll first", Width, Height))
	}
	return point{at.X, at.Y}, nil
}

// mouse sends events of the mouse at one point.
func (p *Page) mouse(ctx context.Context, at point, button input.MouseButton, clicks int64, kinds ...input.DispatchMouseEventType) error {
	for _, kind := range kinds {
		params := input.DispatchMouseEventParams{Type: kind, X: at.x, Y: at.y, Button: button, ClickCount: clicks}
		if kind == input.DispatchMouseEventTypeMousePressed || button != input.MouseButtonNone && kind == input.DispatchMouseEventTypeMouseMoved {
			params.Buttons = 1
		}
		if _, err := cdp.Call(ctx, p.session, input.DispatchMouseEvent, params); err != nil {
			return err
		}
	}
	return nil
}

// Click clicks once or twice.
func (p *Page) Click(ctx context.Context, where Place, button string, double bool) error {
	at, err := p.place(ctx, where)
	if err != nil {
		return err
	}
	b := input.MouseButtonLeft
	switch button {
	case "", "left":
	case "right":
		b = input.MouseButtonRight
	case "middle":
		b = input.MouseButtonMiddle
	default:
		return fmt.Errorf("%.20q is no button: left, right or middle", button)
	}
	if err := p.mouse(ctx, at, input.MouseButtonNone, 0, input.DispatchMouseEventTypeMouseMoved); err != nil {
		return err
	}
	times := int64(1)
	if double {
		times = 2
	}
	for n := int64(1); n <= times; n++ {
		if err := p.mouse(ctx, at, b, n, input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased); err != nil {
			return err
		}
	}
	return nil
}

// Hover moves the mouse.
func (p *Page) Hover(ctx context.Context, where Place) error {
	at, err := p.place(ctx, where)
	if err != nil {
		return err
	}
	return p.mouse(ctx, at, input.MouseButtonNone, 0, input.DispatchMouseEventTypeMouseMoved)
}

// Drag drags from one place to another.
func (p *Page) Drag(ctx context.Context, from, to Place) error {
	begin, err := p.place(ctx, from)
	if err != nil {
		return err
	}
	end, err := p.place(ctx, to)
	if err != nil {
		return err
	}
	middle := point{(begin.x + end.x) / 2, (begin.y + end.y) / 2}
	return errors.Join(
		p.mouse(ctx, begin, input.MouseButtonNone, 0, input.DispatchMouseEventTypeMouseMoved),
		p.mouse(ctx, begin, input.MouseButtonLeft, 1, input.DispatchMouseEventTypeMousePressed),
		p.mouse(ctx, middle, input.MouseButtonLeft, 0, input.DispatchMouseEventTypeMouseMoved),
		p.mouse(ctx, end, input.MouseButtonLeft, 0, input.DispatchMouseEventTypeMouseMoved),
		p.mouse(ctx, end, input.MouseButtonLeft, 1, input.DispatchMouseEventTypeMouseReleased),
	)
}

// Scroll scrolls by so many pixels, at an element or in the middle of the page; an element
// without pixels is scrolled into view.
func (p *Page) Scroll(ctx context.Context, ref string, x, y float64) error {
	at := point{Width / 2, Height / 2}
	if ref != "" {
		var err error
		if at, err = p.pointOf(ctx, ref); err != nil || x == 0 && y == 0 {
			return err
		}
	}
	_, err := cdp.Call(ctx, p.session, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: input.DispatchMouseEventTypeMouseWheel, X: at.x, Y: at.y, DeltaX: Delta(x), DeltaY: Delta(y)})
	return err
}

// Delta returns how far a wheel turns. The protocol's library leaves zero out, and Chromium
// then refuses the event: it gets next to nothing instead.
func Delta(pixels float64) float64 {
	if pixels == 0 {
		return 1e-9
	}
	return pixels
}

// focusFunction prepares an element for text: it says what cannot take any.
const focusFunction = `function(all) {
	const e = this;
	if (e.disabled || e.readOnly) return "is disabled or read-only";
	if (!("value" in e) && !e.isContentEditable) return "takes no text";
	e.focus();
	if (all && e.select) e.select();
	else if (all && e.isContentEditable) getSelection().selectAllChildren(e);
	return "";
}`

// Type types text into an element; with replace in place of what is there. Without a ref
// it goes to what has the focus.
func (p *Page) Type(ctx context.Context, ref, text string, replace bool) error {
	to := p.session
	if ref != "" {
		to = p.refs.elements[ref].session
		why, err := p.call(ctx, ref, focusFunction, replace)
		if err != nil {
			return err
		}
		if string(why) != `""` {
			return errhint.With(fmt.Errorf("%s %s", ref, printable(string(why), maxName)), "choose a textbox of the snapshot")
		}
	}
	if text == "" && replace {
		return p.Press(ctx, "Delete")
	}
	_, err := cdp.Call(ctx, to, input.InsertText, input.InsertTextParams{Text: text})
	return err
}

// fillFunction sets what is no text: it returns "text" for what is one.
const fillFunction = `function(value) {
	const e = this, kind = (e.type || "").toLowerCase(), tell = () => { e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})) };
	if (e.tagName === "INPUT" && (kind === "checkbox" || kind === "radio")) {
		if (e.checked !== (value === "true" || value === "on" || value === "1")) e.click();
		return "done";
	}
	if (e.tagName === "INPUT" && ["date", "time", "datetime-local", "month", "week", "color", "range"].includes(kind)) { e.value = value; tell(); return "done" }
	if (e.tagName === "INPUT" && kind === "file") return "file";
	return e.tagName === "SELECT" ? "select" : "text";
}`

// Fill gives a field of a form a value: text, "true" or "false" of a checkbox, an option.
func (p *Page) Fill(ctx context.Context, ref, value string) error {
	kind, err := p.call(ctx, ref, fillFunction, value)
	if err != nil {
		return err
	}
	switch string(kind) {
	case `"done"`:
		return nil
	case `"select"`:
		return p.Select(ctx, ref, []string{value})
	case `"file"`:
		return errhint.With(fmt.Errorf("%s takes files", ref), "use the action upload")
	}
	return p.Type(ctx, ref, value, true)
}

// selectFunction chooses options by value or label and returns how many there were.
const selectFunction = `function(wanted) {
	if (this.tagName !== "SELECT") return -1;
	let n = 0;
	for (const o of this.options) {
		const is = wanted.includes(o.value) || wanted.includes(o.label.trim());
		if (is && n && !this.multiple) continue;
		o.selected = is;
		if (is) n++;
	}
	this.dispatchEvent(new Event("input", {bubbles: true}));
	this.dispatchEvent(new Event("change", {bubbles: true}));
	return n;
}`

// Select chooses options of a list by their values or labels.
func (p *Page) Select(ctx context.Context, ref string, values []string) error {
	found, err := p.call(ctx, ref, selectFunction, values)
	switch {
	case err != nil:
		return err
	case string(found) == "-1":
		return errhint.With(fmt.Errorf("%s is no list of options", ref), "click it, and then the option that appears")
	case string(found) == "0":
		return errhint.With(fmt.Errorf("%s has none of these options", ref), "the snapshot shows its options")
	}
	return nil
}
