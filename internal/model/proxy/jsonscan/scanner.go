package jsonscan

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
)

const (
	// MaxDepth bounds how deep values are nested.
	MaxDepth = 64
	// MaxKeys bounds the keys of one object.
	MaxKeys = 4096
	// foldDepth is the innermost level where keys that differ only in case are refused.
	foldDepth = 2
	// fewKeys is how many keys are compared one by one.
	fewKeys = 16
	// maxNumber bounds the characters of a number.
	maxNumber = 64
)

// Kind is the kind of a value.
type Kind byte

// The kinds, named by how their values begin.
const (
	None   Kind = 0
	Object Kind = '{'
	Array  Kind = '['
	String Kind = '"'
	Number Kind = '0'
	True   Kind = 't'
	False  Kind = 'f'
	Null   Kind = 'n'
)

// ErrInvalid is wrapped by every error of this package.
var ErrInvalid = errors.New("not acceptable as JSON")

// Scanner reads one document. The zero value is of no use: see Reset. After an
// error every method reports an end, and Err says what it was.
type Scanner struct {
	in     []byte
	pos    int
	err    error
	depth  int
	levels [MaxDepth + 1]level
	keys   []uint64 // hashes of the keys of all open objects
	text   []byte   // the last string that had escapes
	seed   maphash.Seed
}

// level is an open object or array.
type level struct {
	kind  Kind
	keys  int // where its keys begin
	begun bool
}

// New returns a scanner that can be used for many documents, one at a time.
func New() *Scanner { return &Scanner{seed: maphash.MakeSeed()} }

// Reset begins a document.
func (s *Scanner) Reset(in []byte) {
	s.in, s.pos, s.err, s.depth, s.keys = in, 0, nil, 0, s.keys[:0]
}

// Err is the first thing that was wrong.
func (s *Scanner) Err() error { return s.err }

// Pos is where the scanner is: directly before a value after Kind, directly
// behind it when it was read.
func (s *Scanner) Pos() int { return s.pos }

// Depth is the number of open objects and arrays.
func (s *Scanner) Depth() int { return s.depth }

func (s *Scanner) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s at byte %d", ErrInvalid, what, s.pos)
	}
}

// Fail stops the scanner with an error of the calling package.
func (s *Scanner) Fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *Scanner) space() {
	for s.pos < len(s.in) {
		switch s.in[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// Kind tells what the next value is.
func (s *Scanner) Kind() Kind {
	if s.err != nil {
		return None
	}
	s.space()
	if s.pos == len(s.in) {
		s.fail("a value is missing")
		return None
	}
	switch c := s.in[s.pos]; c {
	case '{', '[', '"', 't', 'f', 'n':
		return Kind(c)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	s.fail("no value begins like this")
	return None
}

// Open enters the object or array that Kind announced.
func (s *Scanner) Open() {
	if s.err != nil {
		return
	}
	if s.depth == MaxDepth {
		s.fail("nested too deeply")
		return
	}
	s.depth++
	s.levels[s.depth] = level{kind: Kind(s.in[s.pos]), keys: len(s.keys)}
	s.pos++
}

// next moves to the next member of the open value; false at its end.
func (s *Scanner) next(end byte) bool {
	if s.err != nil {
		return false
	}
	s.space()
	if s.pos == len(s.in) {
		s.fail("the end is missing")
		return false
	}
	l := &s.levels[s.depth]
	c := s.in[s.pos]
	switch {
	case c == end:
		s.pos++
		s.closeLevel(l)
		return false
	case !l.begun:
		l.begun = true
		return true
	case c == ',':
		s.pos++
		return true
	}
	s.fail("a comma is missing")
	return false
}

// closeLevel leaves an object or array.
func (s *Scanner) closeLevel(l *level) {
	if keys := s.keys[l.keys:]; len(keys) > fewKeys {
		slices.Sort(keys)
		for i := 1; i < len(keys); i++ {
			if keys[i] == keys[i-1] {
				s.fail("a key appears twice before here, or nearly so,")
			}
		}
	}
	s.keys = s.keys[:l.keys]
	s.depth--
}

// More moves to the next element of the open array; false at its end.
func (s *Scanner) More() bool { return s.next(']') }

// Key reads the next key of the open object; false at its end. The key is valid
// until the next string is read.
func (s *Scanner) Key() ([]byte, bool) {
	if !s.next('}') {
		return nil, false
	}
	if s.Kind() != String {
		s.fail("a key is missing")
		return nil, false
	}
	key := s.Text()
	s.space()
	if s.err == nil && (s.pos == len(s.in) || s.in[s.pos] != ':') {
		s.fail("a colon is missing")
	}
	if s.err != nil {
		return nil, false
	}
	s.pos++
	s.remember(key)
	return key, s.err == nil
}

// remember refuses a key that was in the same object before.
func (s *Scanner) remember(key []byte) {
	l := &s.levels[s.depth]
	hash := s.hash(key)
	before := s.keys[l.keys:]
	if len(before) == MaxKeys {
		s.fail("too many keys in one object")
		return
	}
	if len(before) < fewKeys && slices.Contains(before, hash) {
		s.fail("a key appears twice, or nearly so,")
		return
	}
	s.keys = append(s.keys, hash)
}

func (s *Scanner) hash(key []byte) uint64 {
	if s.depth > foldDepth {
		return maphash.Bytes(s.seed, key)
	}
	var space [64]byte
	lower := space[:0]
	for _, c := range key {
		if c >= 0x80 {
			s.fail("a key beyond ASCII")
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower = append(lower, c)
	}
	return maphash.Bytes(s.seed, lower)
}

// Skip reads past the next value, whatever it is, and checks all of it.
func (s *Scanner) Skip() {
	switch s.Kind() {
	case Object:
		for s.Open(); ; s.Skip() {
			if _, ok := s.Key(); !ok {
				return
			}
		}
	case Array:
		for s.Open(); s.More(); {
			s.Skip()
		}
	case String:
		s.SkipText()
	case Number:
		s.Digits()
	case True, False, Null:
		s.Word()
	}
}

// End checks that nothing follows the document.
func (s *Scanner) End() error {
	if s.space(); s.err == nil && s.pos != len(s.in) {
		s.fail("something follows the end")
	}
	return s.err
}
