package screen

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/browser"
)

const (
	// MaxText is how much text is typed at once.
	MaxText = 4096
	// maxKey bounds the name of a key.
	maxKey = 40
	// maxClicks bounds how often a button was clicked at one place.
	maxClicks = 3
)

// errInput is returned for what is no input.
var errInput = errors.New("what is no input for a browser")

// mouseEvents are the words of the protocol for what a mouse does.
var mouseEvents = map[string]input.DispatchMouseEventType{
	"down": input.DispatchMouseEventTypeMousePressed, "up": input.DispatchMouseEventTypeMouseReleased, "move": input.DispatchMouseEventTypeMouseMoved,
}

// buttons are those of a mouse, with their bits.
var buttons = map[string]int64{"": 0, "left": 1, "right": 2, "middle": 4}

// keyEvents are the words of the protocol for what a key does.
var keyEvents = map[string]input.DispatchKeyEventType{"down": input.DispatchKeyEventTypeRawKeyDown, "up": input.DispatchKeyEventTypeKeyUp}

// keyCodes are the numbers of keys that write no text.
var keyCodes = map[string]int64{
	"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
	"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46,
}

// Input gives the page that is shown what a person typed or clicked.
func (s *Screen) Input(ctx context.Context, i *api.ViewInput) error {
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	if session == nil {
		return ErrNoPage
	}
	switch i.Type {
	case "mouse":
		return mouse(ctx, session, i)
	case "wheel":
		return wheel(ctx, session, i)
	case "key":
		return key(ctx, session, i)
	case "text":
		return text(ctx, session, i.Text)
	}
	return errInput
}

// Focus brings the page that is shown to the front.
func (s *Screen) Focus(ctx context.Context) error {
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	if session == nil {
		return ErrNoPage
	}
	_, err := cdp.Call(ctx, session, page.BringToFront, cdp.Empty{})
	return err
}

func isPlace(i *api.ViewInput) bool {
	return i.X >= 0 && i.X <= maxSize && i.Y >= 0 && i.Y <= maxSize
}

func mouse(ctx context.Context, s cdp.Session, i *api.ViewInput) error {
	kind, ok := mouseEvents[i.Event]
	bit, known := buttons[i.Button]
	if !ok || !known || !isPlace(i) || i.Clicks < 0 || i.Clicks > maxClicks {
		return errInput
	}
	p := input.DispatchMouseEventParams{Type: kind, X: i.X, Y: i.Y, Button: input.MouseButton(i.Button), ClickCount: int64(i.Clicks)}
	if i.Event != "up" {
		p.Buttons = bit
	}
	_, err := cdp.Call(ctx, s, input.DispatchMouseEvent, p)
	return err
}

func wheel(ctx context.Context, s cdp.Session, i *api.ViewInput) error {
	isDelta := func(x float64) bool { return x >= -maxSize && x <= maxSize }
	if !isPlace(i) || !isDelta(i.DX) || !isDelta(i.DY) {
		return errInput
	}
	_, err := cdp.Call(ctx, s, input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMouseWheel, X: i.X, Y: i.Y, DeltaX: browser.Delta(i.DX), DeltaY: browser.Delta(i.DY),
	})
	return err
}

// key presses or releases a key that writes no text; text is for the others.
func key(ctx context.Context, s cdp.Session, i *api.ViewInput) error {
	kind, ok := keyEvents[i.Event]
	code, known := keyCodes[i.Key]
	if !ok || !known || len(i.Code) > maxKey {
		return fmt.Errorf("%w: the key %.40q", errInput, i.Key)
	}
	p := input.DispatchKeyEventParams{Type: kind, Key: i.Key, Code: i.Code, WindowsVirtualKeyCode: code, NativeVirtualKeyCode: code}
	if i.Key == "Enter" && i.Event == "down" {
		p.Type, p.Text = input.DispatchKeyEventTypeKeyDown, "\r"
	}
	_, err := cdp.Call(ctx, s, input.DispatchKeyEvent, p)
	return err
}

func text(ctx context.Context, s cdp.Session, typed string) error {
	if typed == "" || len(typed) > MaxText || strings.ContainsRune(typed, 0) {
		return errInput
	}
	_, err := cdp.Call(ctx, s, input.InsertText, input.InsertTextParams{Text: typed})
	return err
}
