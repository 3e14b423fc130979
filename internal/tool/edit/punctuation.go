package edit

import "strings"

// NormalizePunctuation replaces the typographic forms of quotes, dashes and
// spaces by those of ASCII. Models exchange them without noticing.
func NormalizePunctuation(s string) string {
	if isASCII(s) {
		return s
	}
	return strings.Map(normalizeRune, s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func normalizeRune(r rune) rune {
	switch {
	case r >= '\u2010' && r <= '\u2015', r == '\u2212', r == '\ufe63', r == '\uff0d':
		return '-'
	case r >= '\u2018' && r <= '\u201b', r == '\u2032':
		return '\''
	case r >= '\u201c' && r <= '\u201f', r == '\u2033':
		return '"'
	case r == '\u00a0', r >= '\u2000' && r <= '\u200a', r == '\u202f', r == '\u205f', r == '\u3000':
		return ' '
	}
	return r
}
