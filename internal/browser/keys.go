package browser

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"

	"github.com/atoll-run/atoll/internal/errhint"
)

// key is a key as the browser is told of it.
type key struct {
	name, code, text string
	number           int64
}

// namedKeys are the keys without a character.
var namedKeys = map[string]key{
	"enter": {"Enter", "Enter", "\r", 13}, "return": {"Enter", "Enter", "\r", 13}, "tab": {"Tab", "Tab", "", 9}, "escape": {"Escape", "Escape", "", 27}, "esc": {"Escape", "Escape", "", 27},
	"backspace": {"Backspace", "Backspace", "", 8}, "delete": {"Delete", "Delete", "", 46}, "insert": {"Insert", "Insert", "", 45}, "space": {" ", "Space", " ", 32},
	"arrowup": {"ArrowUp", "ArrowUp", "", 38}, "arrowdown": {"ArrowDown", "ArrowDown", "", 40}, "arrowleft": {"ArrowLeft", "ArrowLeft", "", 37}, "arrowright": {"ArrowRight", "ArrowRight", "", 39},
	"home": {"Home", "Home", "", 36}, "end": {"End", "End", "", 35}, "pageup": {"PageUp", "PageUp", "", 33}, "pagedown": {"PageDown", "PageDown", "", 34},
	"f1": {"F1", "F1", "", 112}, "f2": {"F2", "F2", "", 113}, "f3": {"F3", "F3", "", 114}, "f4": {"F4", "F4", "", 115}, "f5": {"F5", "F5", "", 116}, "f6": {"F6", "F6", "", 117},
}

// modifierBits are the modifiers of a key.
var modifierBits = map[string]int64{"alt": 1, "control": 2, "ctrl": 2, "controlormeta": 2, "meta": 4, "shift": 8}

// parseKey reads a key such as Enter, a or Control+Shift+ArrowLeft.
func parseKey(text string) (k key, modifiers int64, err error) {
	name := text
	for {
		before, after, found := strings.Cut(name, "+")
		bit, is := modifierBits[strings.ToLower(before)]
		if !found || !is || after == "" {
			break
		}
		modifiers, name = modifiers|bit, after
	}
	if k, ok := namedKeys[strings.ToLower(name)]; ok {
		return k, modifiers, nil
	}
	if utf8.RuneCountInString(name) != 1 {
		return key{}, 0, errhint.With(fmt.Errorf("%.40q is no key", text), "for example Enter, Tab, Escape, ArrowDown, a, Control+a")
	}
	k = key{name: name, text: name}
	if upper := strings.ToUpper(name); len(upper) == 1 && upper[0] >= 'A' && upper[0] <= 'Z' {
		k.code, k.number = "Key"+upper, int64(upper[0])
	}
	return k, modifiers, nil
}

// Press presses a key and lets it go.
func (p *Page) Press(ctx context.Context, text string) error {
	k, modifiers, err := parseKey(text)
	if err != nil {
		return err
	}
	params := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: modifiers, Key: k.name, Code: k.code, WindowsVirtualKeyCode: k.number}
	if k.text != "" && modifiers&^8 == 0 {
		params.Type, params.Text = input.DispatchKeyEventTypeKeyDown, k.text
	}
	if modifiers == 2 && strings.EqualFold(k.name, "a") {
		params.Commands = []string{"selectAll"}
	}
	if _, err := cdp.Call(ctx, p.session, input.DispatchKeyEvent, params); err != nil {
		return err
	}
	params.Type, params.Text, params.Commands = input.DispatchKeyEventTypeKeyUp, "", nil
	_, err = cdp.Call(ctx, p.session, input.DispatchKeyEvent, params)
	return err
}
