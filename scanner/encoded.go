package main

import "strings"

// The kinds of bytes that encodings are made of.
const (
	hexDigit  = 1 << iota
	coded     // of base64, in either alphabet, or of a name in a program
	telling   // one of these is in whatever the library tries to decode as base64
	printable // what the library takes a decoded byte for
)

// kinds says what a byte may be a part of.
type kinds [256]byte

func newKinds() *kinds {
	k := &kinds{}
	for c := range 256 {
		switch {
		case c >= '0' && c <= '9':
			k[c] = hexDigit | coded | telling
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			k[c] = hexDigit | coded
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			k[c] = coded
		case c == '+' || c == '/' || c == '-' || c == '_':
			k[c] = coded | telling
		}
		if c > 8 && c < 127 {
			k[c] |= printable
		}
	}
	return k
}

// The shortest runs of bytes that the library tries to decode.
const (
	shortBase64 = 16
	shortHex    = 32
)

// encoded reports whether the library may find something to decode. It is not
// told that there is nothing where it would find something.
func (k *kinds) encoded(text string) bool {
	return k.escaped(text, "U+") || k.escaped(text, `\u`) || k.escaped(text, `\U`) || k.whole(text)
}

// escaped reports whether a sign stands somewhere before four digits.
func (k *kinds) escaped(text, sign string) bool {
	for {
		at := strings.Index(text, sign)
		if at < 0 {
			return false
		}
		text = text[at+len(sign):]
		if k.digits(text, 4) {
			return true
		}
	}
}

// whole looks at percent signs and at words that may be encoded as a whole. A
// percent sign with its digits is between words even if nothing comes out of it.
func (k *kinds) whole(text string) bool {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '%' && k.digits(text[i+1:], 2):
			if k[digit(text[i+1])<<4|digit(text[i+2])]&printable != 0 {
				return true
			}
			i += 3
		case k[c]&coded != 0:
			end := i + 1
			for end < len(text) && k[text[end]]&coded != 0 {
				end++
			}
			if k.run(text[i:end]) {
				return true
			}
			i = end
		default:
			i++
		}
	}
	return false
}

func (k *kinds) digits(text string, n int) bool {
	if n > len(text) {
		return false
	}
	for i := range n {
		if k[text[i]]&hexDigit == 0 {
			return false
		}
	}
	return true
}

// run looks at letters, digits and signs without anything else between them, as
// the library does: digits of hex first, then what is left.
func (k *kinds) run(text string) bool {
	for len(text) >= shortBase64 {
		n := 0
		for n < len(text) && k[text[n]]&hexDigit != 0 {
			n++
		}
		if n < shortHex {
			return k.base64(text)
		}
		if k.hex(text[:n]) {
			return true
		}
		text = text[n:]
	}
	return false
}

func (k *kinds) hex(text string) bool {
	for i := 0; i+1 < len(text); i += 2 {
		if k[digit(text[i])<<4|digit(text[i+1])]&printable == 0 {
			return false
		}
	}
	return true
}

func digit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}

// base64 looks at all but the end of what may be encoded so.
func (k *kinds) base64(text string) bool {
	if !k.any(text, telling) {
		return false
	}
	for i := 0; i+4 <= len(text); i += 4 {
		group := sextet(text[i])<<18 | sextet(text[i+1])<<12 | sextet(text[i+2])<<6 | sextet(text[i+3])
		if k[byte(group>>16)]&k[byte(group>>8)]&k[byte(group)]&printable == 0 {
			return false
		}
	}
	return true
}

func (k *kinds) any(text string, kind byte) bool {
	for i := range len(text) {
		if k[text[i]]&kind != 0 {
			return true
		}
	}
	return false
}

// sextet is what a sign of either alphabet stands for.
func sextet(c byte) uint32 {
	switch {
	case c >= 'A' && c <= 'Z':
		return uint32(c - 'A')
	case c >= 'a' && c <= 'z':
		return uint32(c-'a') + 26
	case c >= '0' && c <= '9':
		return uint32(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	}
	return 63
}
