package json5

import (
	"bytes"
	"unicode"
)

// space skips white space and comments.
func (p *parser) space() error {
	for {
		r, size := p.peek()
		switch {
		case isSpace(r):
			p.pos += size
		case r == '/':
			if err := p.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (p *parser) comment() error {
	switch rest := p.src[p.pos:]; {
	case bytes.HasPrefix(rest, []byte("//")):
		p.lineComment()
		return nil
	case bytes.HasPrefix(rest, []byte("/*")):
		end := bytes.Index(rest[2:], []byte("*/"))
		if end < 0 {
			return p.errorAt(p.pos, "the comment that starts here has no end, expected '*/'")
		}
		p.pos += 2 + end + 2
		return nil
	default:
		return p.errorAt(p.pos, "expected a comment ('//' or '/*') after '/'")
	}
}

func (p *parser) lineComment() {
	for {
		r, size := p.peek()
		if r == endOfFile || isLineTerminator(r) {
			return
		}
		p.pos += size
	}
}

func isLineTerminator(r rune) bool {
	return r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029'
}

func isSpace(r rune) bool {
	switch r {
	case ' ', '\t', '\v', '\f', '\u00A0', '\uFEFF':
		return true
	}
	return isLineTerminator(r) || unicode.Is(unicode.Zs, r)
}
