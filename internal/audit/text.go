package audit

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// maxText is how many bytes of a text are kept.
const maxText = 256

func appendText(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendQuoted(b, text)
}

func appendNumber(b []byte, name string, n int64) []byte {
	if n == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, n, 10)
}

func appendFlag(b []byte, name string, is bool) []byte {
	if !is {
		return b
	}
	return append(append(append(b, `,"`...), name...), `":true`...)
}

const hexDigits = "0123456789abcdef"

// appendQuoted writes a JSON string of at most maxText bytes of the text.
// Whatever could end a line or move a terminal's cursor is escaped.
func appendQuoted(b []byte, text string) []byte {
	cut := len(text) > maxText
	if cut {
		text = text[:maxText]
	}
	b = append(b, '"')
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r >= ' ' && r < 0x7f:
			b = append(b, byte(r))
		case r > 0xffff || r == utf8.RuneError:
			b = append(b, "\ufffd"...)
		case r < 0xa0 || r == 0x2028 || r == 0x2029 || isBidi(r):
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			b = append(b, text[:size]...)
		}
		text = text[size:]
	}
	if cut {
		b = append(b, "…"...)
	}
	return append(b, '"')
}

// isBidi reports marks that make text read in another order than it is stored.
func isBidi(r rune) bool {
	return r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x2060 && r <= 0x2069 || r == 0xfeff
}

// keyForms are what common keys look like, keyMarks what one of them must hold:
// the marks are looked for first, because they are almost never there.
var (
	keyForms = lazyregexp.New(`\b(?:(?:sk|pk|rk|ghp|gho|ghs|xox[a-z]|atoll)[-_]|AKIA|AIza|[Bb]earer )[A-Za-z0-9_.\-]{16,}`)
	keyMarks = []string{"sk-", "pk-", "rk-", "sk_", "pk_", "rk_", "gh", "xox", "atoll", "AKIA", "AIza", "earer "}
)

// redact takes keys out of a text that was written elsewhere.
func redact(text string, scrub func(string) string) string {
	if text == "" {
		return text
	}
	if scrub != nil {
		text = scrub(text)
	}
	if len(text) > 4*maxText {
		text = text[:4*maxText]
	}
	for _, mark := range keyMarks {
		if strings.Contains(text, mark) {
			return keyForms.ReplaceAllString(text, "[redacted]")
		}
	}
	return text
}
