package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Text reads a string. The result is valid until the next one is read.
func (s *Scanner) Text() []byte {
	if s.err != nil {
		return nil
	}
	if s.Kind() != String {
		s.fail("not a string")
		return nil
	}
	start := s.pos + 1
	text, escaped := s.readText(s.text[:0])
	s.text = text
	switch {
	case s.err != nil:
		return nil
	case escaped:
		return text
	}
	return s.in[start : s.pos-1]
}

// Prefix reads a string and returns at most n of its first bytes. It costs no
// memory, however long the string is.
func (s *Scanner) Prefix(n int) []byte {
	if s.Kind() != String {
		s.fail("not a string")
		return nil
	}
	start := s.pos + 1
	s.SkipText()
	if s.err != nil {
		return nil
	}
	s.text = decodePrefix(s.text[:0], s.in[start:s.pos-1], n)
	return s.text[:min(n, len(s.text))]
}

// decodePrefix decodes the first n bytes of a string that was checked before.
func decodePrefix(dst, raw []byte, n int) []byte {
	for i := 0; i < len(raw) && len(dst) < n; {
		if raw[i] != '\\' {
			dst = append(dst, raw[i])
			i++
			continue
		}
		r, used := unescape(raw[i:])
		dst = utf8.AppendRune(dst, r)
		i += used
	}
	return dst
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain returns the number of bytes that in begins with and that need no
// attention: neither quotes nor backslashes, control characters, or anything
// beyond ASCII. It looks at eight at once; the lowest hit is exact, whatever the
// borrow does to those above it.
func plain(in []byte) int {
	i := 0
	for ; i+8 <= len(in); i += 8 {
		x := binary.LittleEndian.Uint64(in[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		if hits := ((x - ones*0x20) | (quote - ones) | (slash - ones) | x) & highs; hits != 0 {
			return i + bits.TrailingZeros64(hits)/8
		}
	}
	for ; i < len(in); i++ {
		if c := in[i]; c < 0x20 || c >= 0x80 || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// SkipText reads past a string, eight plain bytes at a time.
func (s *Scanner) SkipText() {
	in, pos := s.in, s.pos+1
	for pos += plain(in[pos:]); !s.endsAt(pos); pos += plain(in[pos:]) {
		switch {
		case pos+1 < len(in) && in[pos] == '\\' && simple[in[pos+1]]:
			pos += 2
		case pos == len(in) || in[pos] != '"':
			if s.pos = pos; !s.skipOdd() {
				return
			}
			pos = s.pos
		}
	}
}

// endsAt leaves the string if its end is at pos.
func (s *Scanner) endsAt(pos int) bool {
	if pos == len(s.in) || s.in[pos] != '"' {
		return false
	}
	s.pos = pos + 1
	return true
}

// simple are the characters that a backslash may stand before, but for u.
var simple = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// skipOdd reads past what needs a closer look.
func (s *Scanner) skipOdd() bool {
	switch {
	case s.pos == len(s.in):
		s.fail("a string has no end")
	case s.in[s.pos] == '\\':
		for s.err == nil && s.at('\\') { // they come together
			s.escape()
		}
	case s.in[s.pos] < 0x20:
		s.fail("a control character in a string")
	default:
		for s.err == nil && s.pos < len(s.in) && s.in[s.pos] >= 0x80 { // these too
			s.rune()
		}
	}
	return s.err == nil
}

// rune reads one character beyond ASCII.
func (s *Scanner) rune() {
	r, size := utf8.DecodeRune(s.in[s.pos:])
	if r == utf8.RuneError && size == 1 {
		s.fail("invalid UTF-8")
	}
	s.pos += size
}

// readText reads a string from its opening quote on. The text is appended to dst
// once there is an escape in it.
func (s *Scanner) readText(dst []byte) (text []byte, escaped bool) {
	start := s.pos + 1
	s.pos++
	for s.err == nil {
		from := s.pos
		s.pos += plain(s.in[s.pos:])
		if s.pos < len(s.in) && s.in[s.pos] >= 0x80 {
			s.rune()
		}
		if escaped {
			dst = append(dst, s.in[from:s.pos]...)
		}
		if s.at('"') {
			s.pos++
			return dst, escaped
		}
		if s.at('\\') {
			if !escaped {
				dst = append(dst, s.in[start:s.pos]...)
			}
			escaped = true
			dst = utf8.AppendRune(dst, s.escape())
		} else if s.pos == len(s.in) || s.in[s.pos] < 0x20 {
			s.skipOdd()
		}
	}
	return dst, escaped
}

// escape reads one escape, or a pair of surrogates.
func (s *Scanner) escape() rune {
	r, used := unescape(s.in[s.pos:])
	if used == 0 {
		s.fail("a broken escape")
	}
	s.pos += used
	return r
}

// unescape decodes the escape that in begins with; used is 0 if it is broken.
func unescape(in []byte) (r rune, used int) {
	if len(in) < 2 {
		return 0, 0
	}
	switch in[1] {
	case '"', '\\', '/':
		return rune(in[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeUnit(in)
	}
	return 0, 0
}

func unescapeUnit(in []byte) (r rune, used int) {
	r = unit(in)
	if r < 0 {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if pair := utf16.DecodeRune(r, unit(in[6:])); pair != utf8.RuneError {
		return pair, 12
	}
	return 0, 0
}

// unit reads \uXXXX; -1 if that is not there.
func unit(in []byte) (r rune) {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return -1
	}
	for _, c := range in[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
