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

type harmless struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

// Write passes on what is whole; the rest of a character comes with the next
// piece.
func (h *harmless) Write(p []byte) (int, error) {
	data := append(h.rest, p...)
	var out strings.Builder
	for len(data) > 0 && (utf8.FullRune(data) || len(data) >= utf8.UTFMax) {
		r, size := utf8.DecodeRune(data)
		if r == '\n' || r == '\t' {
			out.WriteRune(r)
		} else {
			out.WriteString(shown(r))
		}
		data = data[size:]
	}
	h.rest = append([]byte(nil), data...)
	if _, err := io.WriteString(h.w, out.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
