package edit

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/json5"
)

// scanner walks over a text that json5.Parse took.
type scanner struct {
	src []byte
	at  int
}

// object is where an object and its members are.
type object struct {
	start, end int // of the braces
	members    []member
	trailing   bool // a comma follows the last member
}

type member struct {
	key               string
	keyAt, start, end int // start and end are the value's
}

// space skips white space and comments.
func (s *scanner) space() {
	for s.at < len(s.src) {
		rest := s.src[s.at:]
		r, size := utf8.DecodeRune(rest)
		switch {
		case bytes.HasPrefix(rest, []byte("//")):
			s.at += until(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			s.at += 2 + until(rest[2:], "*/") + len("*/")
		case unicode.IsSpace(r), r == '\ufeff', r == '\u2028', r == '\u2029':
			s.at += size
		default:
			return
		}
	}
}

// until returns how many bytes come before the text, or all.
func until(src []byte, text string) int {
	if i := bytes.Index(src, []byte(text)); i >= 0 {
		return i
	}
	return len(src)
}

// object reads the object at the current position.
func (s *scanner) object() object {
	o := object{start: s.at}
	s.at++
	for s.space(); s.at < len(s.src) && s.src[s.at] != '}'; s.space() {
		m := member{keyAt: s.at}
		s.value()
		m.key = keyOf(s.src[m.keyAt:s.at])
		s.space()
		s.at++ // the colon
		s.space()
		m.start = s.at
		s.value()
		m.end = s.at
		o.members = append(o.members, m)
		s.space()
		if o.trailing = s.at < len(s.src) && s.src[s.at] == ','; o.trailing {
			s.at++
		}
	}
	o.end = s.at
	s.at++
	return o
}

// keyOf returns the key that a text spells.
func keyOf(text []byte) (key string) {
	if len(text) == 0 || text[0] != '"' && text[0] != '\'' {
		return string(text)
	}
	if doc, err := json5.Parse(text); err == nil {
		_ = json.Unmarshal(doc.JSON, &key)
	}
	return key
}

// value skips a value, or a key.
func (s *scanner) value() {
	if s.at >= len(s.src) {
		return
	}
	switch c := s.src[s.at]; c {
	case '"', '\'':
		s.quoted(c)
	case '{', '[':
		s.nested()
	default:
		n := bytes.IndexFunc(s.src[s.at:], func(r rune) bool { return strings.ContainsRune(",:]}/", r) || unicode.IsSpace(r) || r == '\ufeff' })
		if n < 0 {
			n = len(s.src) - s.at
		}
		s.at += n
	}
}

func (s *scanner) quoted(quote byte) {
	for s.at++; s.at < len(s.src) && s.src[s.at] != quote; s.at++ {
		if s.src[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
}

// nested skips an object or a list.
func (s *scanner) nested() {
	depth := 0
	for s.at < len(s.src) {
		switch c := s.src[s.at]; c {
		case '"', '\'':
			s.quoted(c)
			continue
		case '/':
			s.space()
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}
