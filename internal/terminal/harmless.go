package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// IsTerminal reports whether a person sees what is written to w.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Printable escapes what could move a terminal's cursor, set its title or its
// clipboard, forge a line or turn text around.
func Printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteString(shown(r))
	}
	return b.String()
}

// shown is one character as a terminal may get it.
func shown(r rune) string {
	switch {
	case unicode.IsGraphic(r) && r != utf8.RuneError:
		return string(r)
	case r == '\n':
		return `\n`
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// Harmless returns a writer that passes text on to w, of which lines and tabs
// stay and everything else that could act on a terminal is escaped.
func Harmless(w io.Writer) io.Writer { return &harmless{w: w} }

// Coloured is Harmless for the output of a person's own command: colours and
// carriage returns stay too.
func Coloured(w io.Writer) io.Writer { return &harmless{w: w, coloured: true} }

type harmless struct {
	w        io.Writer
	coloured bool
	rest     []byte // the beginning of a character or of a colour
}

// Write passes on what is whole; the rest of a character comes with the next
// piece.
func (h *harmless) Write(p []byte) (int, error) {
	data := append(h.rest, p...)
	var out strings.Builder
	for len(data) > 0 && (utf8.FullRune(data) || len(data) >= utf8.UTFMax) {
		size := h.colour(data)
		if size == 0 {
			break
		}
		if size > 0 {
			out.Write(data[:size])
		} else {
			size = h.character(&out, data)
		}
		data = data[size:]
	}
	h.rest = append([]byte(nil), data...) // short: a character, or less than maxColour
	if _, err := io.WriteString(h.w, out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// character writes the first character of data, escaped if it could act, and
// returns its length.
func (h *harmless) character(out *strings.Builder, data []byte) int {
	r, size := utf8.DecodeRune(data)
	if r == '\n' || r == '\t' || r == '\r' && h.coloured {
		out.WriteRune(r)
	} else {
		out.WriteString(shown(r))
	}
	return size
}

// maxColour is the longest sequence that is taken for a colour, in bytes.
const maxColour = 32

// colour returns the length of the sequence that sets a colour (ESC [ … m) at
// the beginning of data: -1 if there is none, 0 if its end is not there yet.
func (h *harmless) colour(data []byte) int {
	if !h.coloured || data[0] != 0x1b {
		return -1
	}
	for i, c := range data[1:min(len(data), maxColour)] {
		switch {
		case i == 0 && c == '[', i > 0 && (c >= '0' && c <= '9' || c == ';'):
		case i > 0 && c == 'm':
			return i + 2
		default:
			return -1
		}
	}
	if len(data) < maxColour {
		return 0
	}
	return -1
}
