package synccmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/terminal"
)

// key is one key: its character, or one of these names.
type key string

const (
	keyUp        key = "up"
	keyDown      key = "down"
	keyPageUp    key = "page up"
	keyPageDown  key = "page down"
	keyHome      key = "home"
	keyEnd       key = "end"
	keyEnter     key = "enter"
	keyEscape    key = "escape"
	keyBackspace key = "backspace"
	keyInterrupt key = "interrupt"
)

// sequences are what terminals send for keys without a character.
func sequences() map[string]key {
	return map[string]key{
		"\x1b[A": keyUp, "\x1bOA": keyUp, "\x1b[B": keyDown, "\x1bOB": keyDown, "\x1b[5~": keyPageUp, "\x1b[6~": keyPageDown,
		"\x1b[H": keyHome, "\x1b[1~": keyHome, "\x1b[F": keyEnd, "\x1b[4~": keyEnd,
		"\r": keyEnter, "\n": keyEnter, "\x1b": keyEscape, "\x7f": keyBackspace, "\b": keyBackspace, "\x03": keyInterrupt, "\x04": keyInterrupt,
	}
}

// keysIn returns the keys in what one read of a terminal gave. An escape sequence
// arrives in one read; an unknown one is dropped whole.
func keysIn(data []byte) (keys []key) {
	known := sequences()
	for len(data) > 0 {
		if k, ok := known[string(data)]; ok {
			return append(keys, k)
		}
		if data[0] == 0x1b {
			end := bytes.IndexFunc(data[1:], func(r rune) bool { return r >= '@' && r <= '~' && r != '[' && r != 'O' })
			if end < 0 {
				return keys
			}
			if k, ok := known[string(data[:end+2])]; ok {
				keys = append(keys, k)
			}
			data = data[end+2:]
			continue
		}
		_, size := utf8.DecodeRune(data)
		if k, ok := known[string(data[:size])]; ok {
			keys = append(keys, k)
		} else if data[0] >= ' ' && utf8.Valid(data[:size]) {
			keys = append(keys, key(data[:size]))
		}
		data = data[size:]
	}
	return keys
}

// The sequences that open and close the screen: another page of the terminal, no
// cursor, no lines that wrap.
const (
	openScreen  = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	closeScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// runScreen shows the model and passes keys to it until it is done.
func (v *verb) runScreen(screen *os.File, m *model) error {
	typing := v.In.(*os.File) // screen found it to be one
	before, err := term.MakeRaw(int(typing.Fd()))
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer func() {
		_, _ = io.WriteString(screen, closeScreen)
		_ = term.Restore(int(typing.Fd()), before)
	}()
	if _, err := io.WriteString(screen, openScreen); err != nil {
		return err
	}
	sizes, stop := terminal.Follow(screen)
	defer stop()
	return v.loop(screen, m, readKeys(typing), sizes)
}

// readKeys returns the keys that are typed. The read cannot be ended; the process
// ends soon after the screen does.
func readKeys(from io.Reader) <-chan []key {
	typed := make(chan []key)
	go func() {
		defer close(typed)
		data := make([]byte, 256)
		for {
			n, err := from.Read(data)
			if err != nil {
				return
			}
			typed <- keysIn(data[:n])
		}
	}()
	return typed
}

// draw returns the sequences that show lines: each from its beginning, the rest of
// it erased.
func draw(lines []string) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	return b.String() + "\x1b[J"
}

// loop draws, and waits for keys or another size, until the model is done.
func (v *verb) loop(screen *os.File, m *model, typed <-chan []key, sizes <-chan machine.Size) error {
	for height := int(terminal.Size(screen).Rows); !m.done; {
		if _, err := io.WriteString(screen, draw(m.view(height))); err != nil {
			return err
		}
		select {
		case keys, ok := <-typed:
			if !ok {
				return nil
			}
			for _, k := range keys {
				m.press(k)
			}
		case size := <-sizes:
			height = int(size.Rows)
		case <-v.ctx().Done():
			return v.ctx().Err()
		}
	}
	return nil
}
