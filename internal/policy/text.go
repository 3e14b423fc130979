package policy

import (
	"strings"
	"unicode"
)

// The functions here do to text what the JavaScript of the original does to
// it, because names and hashes are made from the result.

// trim removes what JavaScript calls white space from both ends.
func trim(s string) string { return strings.TrimFunc(s, isJSSpace) }

func isJSSpace(r rune) bool {
	const byteOrderMark, nextLine = '\uFEFF', '\u0085'
	return r == byteOrderMark || r != nextLine && unicode.IsSpace(r)
}

// lower is JavaScript's toLowerCase: the dotted capital I becomes two characters.
func lower(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307"))
}

// replaceRuns puts one "-" for every run of bytes that keep refuses.
func replaceRuns(s string, keep func(byte) bool) string {
	var b strings.Builder
	inRun := false
	for i := range len(s) {
		if c := s[i]; keep(c) {
			b.WriteByte(c)
			inRun = false
		} else if !inRun {
			b.WriteByte('-')
			inRun = true
		}
	}
	return b.String()
}

func isLowerAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
}

func isAlnum(c byte) bool { return isLowerAlnum(c) || 'A' <= c && c <= 'Z' }

// hasControl tells whether s holds a character that acts instead of being shown.
func hasControl(s string) bool { return strings.ContainsFunc(s, isControl) }

func isControl(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}
