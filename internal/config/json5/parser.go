package json5

import (
	"fmt"
	"unicode/utf8"
)

// parser walks src once and appends JSON to out as it goes.
type parser struct {
	src   []byte
	pos   int
	out   []byte
	marks []mark
	depth int
}

const endOfFile = rune(-1)

// peek returns the next character and its size in bytes.
func (p *parser) peek() (rune, int) {
	if p.pos >= len(p.src) {
		return endOfFile, 0
	}
	if c := p.src[p.pos]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRune(p.src[p.pos:])
}

// accept consumes c if it is next.
func (p *parser) accept(c byte) bool {
	if p.pos < len(p.src) && p.src[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) errorAt(offset int, format string, args ...any) error {
	return &SyntaxError{
		Position: newLines(p.src).position(offset),
		Msg:      fmt.Sprintf(format, args...),
	}
}

// expected reports what should stand at the current place.
func (p *parser) expected(what string) error {
	return p.errorAt(p.pos, "expected %s, found %s", what, p.found())
}

func (p *parser) found() string {
	switch r, _ := p.peek(); r {
	case endOfFile:
		return "the end of the file"
	case '\n', '\r', '\u2028', '\u2029':
		return "the end of the line"
	default:
		return fmt.Sprintf("%q", r)
	}
}

// copied appends src[from:to] as it is.
func (p *parser) copied(from, to int) {
	if from == to {
		return
	}
	last := len(p.marks) - 1
	runsOn := last >= 0 && !p.marks[last].made && len(p.out)-p.marks[last].json == from-p.marks[last].src
	if !runsOn {
		p.marks = append(p.marks, mark{json: len(p.out), src: from})
	}
	p.out = append(p.out, p.src[from:to]...)
}

// made appends text that stands for the source at offset from.
func (p *parser) made(from int, text string) {
	p.marks = append(p.marks, mark{json: len(p.out), src: from, made: true})
	p.out = append(p.out, text...)
}

func (p *parser) document() error {
	if at := invalidUTF8(p.src); at >= 0 {
		return p.errorAt(at, "the file is not UTF-8 here")
	}
	if err := p.space(); err != nil {
		return err
	}
	if err := p.value(); err != nil {
		return err
	}
	if err := p.space(); err != nil {
		return err
	}
	if p.pos < len(p.src) {
		return p.expected("the end of the file after the value")
	}
	return nil
}

// value parses one value; white space around it is the caller's.
func (p *parser) value() error {
	switch r, _ := p.peek(); {
	case r == '{':
		return p.nested(p.object)
	case r == '[':
		return p.nested(p.list)
	case r == '"' || r == '\'':
		return p.quoted()
	case r == '+' || r == '-' || r == '.' || isDigit(r):
		return p.number()
	case isIdentifierStart(r):
		return p.word()
	default:
		return p.expected("a value")
	}
}

// nested runs parse one level deeper.
func (p *parser) nested(parse func() error) error {
	if p.depth == MaxDepth {
		return p.errorAt(p.pos, "lists and objects are nested more than %d levels deep", MaxDepth)
	}
	p.depth++
	defer func() { p.depth-- }()
	return parse()
}

func (p *parser) list() error {
	return p.members(']', "a value or ']'", p.value)
}

func (p *parser) object() error {
	return p.members('}', "a key or '}'", p.member)
}

// members parses a bracketed sequence: the opening bracket is next. A comma may
// follow the last element; JSON must not have it, so commas are written before
// the element that follows them.
func (p *parser) members(closing byte, want string, element func() error) error {
	p.copied(p.pos, p.pos+1)
	p.pos++
	for comma := -1; ; {
		if err := p.space(); err != nil {
			return err
		}
		if p.accept(closing) {
			p.copied(p.pos-1, p.pos)
			return nil
		}
		if r, _ := p.peek(); r == ',' || r == endOfFile {
			return p.expected(want)
		}
		if comma >= 0 {
			p.copied(comma, comma+1)
		}
		if err := element(); err != nil {
			return err
		}
		if err := p.space(); err != nil {
			return err
		}
		comma = p.pos
		if r, _ := p.peek(); !p.accept(',') && r != rune(closing) {
			return p.expected(fmt.Sprintf("',' or '%c'", closing))
		}
	}
}

func (p *parser) member() error {
	if err := p.key(); err != nil {
		return err
	}
	if err := p.space(); err != nil {
		return err
	}
	if !p.accept(':') {
		return p.expected("':' after the key")
	}
	p.copied(p.pos-1, p.pos)
	if err := p.space(); err != nil {
		return err
	}
	return p.value()
}

func (p *parser) key() error {
	r, _ := p.peek()
	switch {
	case r == '"' || r == '\'':
		return p.quoted()
	case r == '\\' || isIdentifierStart(r):
		return p.identifier()
	default:
		return p.expected("a key or '}'")
	}
}

// word parses true, false and null, and explains the rest.
func (p *parser) word() error {
	start := p.pos
	for r, size := p.peek(); isIdentifierPart(r); r, size = p.peek() {
		p.pos += size
	}
	switch word := string(p.src[start:p.pos]); word {
	case "true", "false", "null":
		p.copied(start, p.pos)
		return nil
	case "Infinity", "NaN":
		return p.errorAt(start, "%s is not a number that can be used here", word)
	default:
		return p.errorAt(start, "expected a value, found the word %s (text needs quotes)", abbreviate(word))
	}
}

// abbreviate quotes text from the source for a message of bounded length.
func abbreviate(text string) string {
	const most = 40
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
