package json5

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted parses a string in single or double quotes.
func (p *parser) quoted() error {
	start, quote := p.pos, p.src[p.pos]
	p.pos++
	p.made(start, `"`)
	for {
		r, size := p.peek()
		switch {
		case r == endOfFile, r == '\n', r == '\r':
			return p.errorAt(start, "the string that starts here has no end, expected %c on the same line", quote)
		case r == rune(quote):
			p.made(p.pos, `"`)
			p.pos++
			return nil
		case r == '\\':
			if err := p.escape(); err != nil {
				return err
			}
		case r == '"' || r < ' ':
			p.character(p.pos, r)
			p.pos += size
		default:
			p.copied(p.pos, p.pos+size)
			p.pos += size
		}
	}
}

// character writes r, which the source gave at offset from in another form.
func (p *parser) character(from int, r rune) {
	switch {
	case r == '"', r == '\\':
		p.made(from, `\`+string(r))
	case r < ' ':
		p.made(from, fmt.Sprintf(`\u%04x`, r))
	default:
		p.made(from, string(r))
	}
}

// escape parses what a backslash starts inside a string.
func (p *parser) escape() error {
	start := p.pos
	p.pos++
	r, size := p.peek()
	p.pos += size
	switch {
	case r == endOfFile:
		return p.errorAt(start, "expected a character after '\\', found the end of the file")
	case r == '\r':
		p.accept('\n')
	case isLineTerminator(r): // a line continuation adds nothing
	case r == 'u' || r == 'x':
		return p.codeEscape(start, r)
	case r == '0' && !isDigit(p.next()):
		p.character(start, 0)
	case isDigit(r):
		return p.errorAt(start, "octal escapes are not allowed, expected \\x or \\u and hexadecimal digits")
	default:
		p.character(start, simpleEscape(r))
	}
	return nil
}

func simpleEscape(r rune) rune {
	switch r {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	}
	return r
}

// codeEscape parses the digits of \x and \u. A pair of surrogates makes one
// character; half a pair is no text in any encoding, so it is refused.
func (p *parser) codeEscape(start int, kind rune) error {
	if kind == 'x' {
		r, err := p.hex(2)
		if err != nil {
			return err
		}
		p.character(start, r)
		return nil
	}
	r, err := p.hex(4)
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		if !p.accept('\\') || !p.accept('u') {
			return p.errorAt(start, "half a surrogate pair, expected two \\u escapes that make one character")
		}
		low, err := p.hex(4)
		if err != nil {
			return err
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return p.errorAt(start, "these two \\u escapes do not make one character")
		}
	}
	p.character(start, r)
	return nil
}

// hex reads exactly n hexadecimal digits.
func (p *parser) hex(n int) (rune, error) {
	for i := range n {
		if p.pos+i >= len(p.src) || !isHexDigit(rune(p.src[p.pos+i])) {
			p.pos = min(p.pos+i, len(p.src))
			return 0, p.expected(fmt.Sprintf("%d hexadecimal digits", n))
		}
	}
	v, err := strconv.ParseUint(string(p.src[p.pos:p.pos+n]), 16, 32)
	p.pos += n
	return rune(v), err
}

// identifier parses a key without quotes: an ECMAScript 5.1 identifier name.
func (p *parser) identifier() error {
	p.made(p.pos, `"`)
	for first := true; ; first = false {
		start := p.pos
		r, size := p.peek()
		escaped := r == '\\'
		if escaped {
			p.pos++
			if !p.accept('u') {
				return p.expected("'u' after '\\' in a key")
			}
			var err error
			if r, err = p.hex(4); err != nil {
				return err
			}
		} else {
			p.pos += size
		}
		if ok := isIdentifierStart(r) || !first && isIdentifierPart(r); !ok {
			if escaped {
				return p.errorAt(start, "%q cannot be part of a key without quotes", r)
			}
			p.pos = start
			p.made(start, `"`)
			return nil
		}
		if escaped {
			p.character(start, r)
		} else {
			p.copied(start, p.pos)
		}
	}
}

func (p *parser) next() rune {
	r, _ := p.peek()
	return r
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

func isHexDigit(r rune) bool {
	return isDigit(r) || 'a' <= r && r <= 'f' || 'A' <= r && r <= 'F'
}

func isIdentifierStart(r rune) bool {
	return r == '$' || r == '_' || r > 0 && (unicode.IsLetter(r) || unicode.Is(unicode.Nl, r))
}

func isIdentifierPart(r rune) bool {
	const joiner, nonJoiner = '\u200D', '\u200C'
	return isIdentifierStart(r) || r == joiner || r == nonJoiner ||
		r > 0 && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc)
}
