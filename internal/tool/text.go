package tool

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// sniffed is how much of a file or output is looked at to tell text from other
// things.
const sniffed = 8 << 10

// isBinary tells bytes that make no sense to a reader. Text has no NUL, and few
// bytes that are not UTF-8.
func isBinary(b []byte) bool {
	b = b[:min(len(b), sniffed)]
	if bytes.IndexByte(b, 0) >= 0 {
		return true
	}
	odd := 0
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 && utf8.FullRune(b) || r < ' ' && !strings.ContainsRune("\t\n\r\f\b\x1b", r) {
			odd++
		}
		b = b[n:]
		if odd > sniffed/4 {
			return true
		}
	}
	return false
}

// escapes are the sequences by which programs paint terminals.
var escapes = lazyregexp.New(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])`)

// clean is output as a model can read it: no colours, no control characters,
// every line break a newline, valid UTF-8.
func clean(b []byte) string {
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	text = escapes.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r':
			return '\n'
		case r < ' ' && r != '\n' && r != '\t', r == 0x7f, r >= 0x80 && r < 0xa0:
			return -1
		}
		return r
	}, text)
}

// cutMiddle keeps the beginning and the end of a text that is longer than limit
// bytes, at line breaks where there are any, and says what is missing.
func cutMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	half := limit / 2
	head, tail := text[:half], text[len(text)-half:]
	if at := strings.LastIndexByte(head, '\n'); at > half/2 {
		head = head[:at+1]
	}
	if at := strings.IndexByte(tail, '\n'); at >= 0 && at < half/2 {
		tail = tail[at+1:]
	}
	head, tail = strings.ToValidUTF8(head, ""), strings.ToValidUTF8(tail, "")
	return head + leftOut(len(text)-len(head)-len(tail)) + tail
}

func leftOut(n int) string { return fmt.Sprintf("\n[… %s left out …]\n", sizeText(int64(n))) }

// cutLine shortens one line to limit bytes, not in the middle of a letter.
func cutLine(line string, limit int) (short string, cut int) {
	if len(line) <= limit {
		return line, 0
	}
	at := limit
	for at > limit-utf8.UTFMax && at > 0 && !utf8.RuneStart(line[at]) {
		at--
	}
	return line[:at], len(line) - at
}

// sizeText is a number of bytes as people say it.
func sizeText(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10_000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
