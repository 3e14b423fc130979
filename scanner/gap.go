package main

import (
	"regexp/syntax"
	"unicode"
)

// byteSet is a set of bytes. One that is not ASCII is in every set: what it is a
// part of is left to the expression.
type byteSet [256]bool

// gap is what may stand between a word and the sign that must follow: most texts
// are told apart there, without an expression.
type gap struct {
	between byteSet
	most    int // bytes; none is -1
	after   byteSet
}

// gapOf reads the parts that follow a word, if they say enough.
func gapOf(parts []*syntax.Regexp) *gap {
	g := &gap{}
	for i, part := range parts {
		if !optional(part) {
			nullable := true
			for _, rest := range parts[i:] {
				if nullable = g.after.firsts(rest); !nullable {
					return g
				}
			}
			return nil // it may end where the word does
		}
		g.between.firsts(part.Sub[0])
		switch {
		case part.Op == syntax.OpStar || part.Op == syntax.OpRepeat && part.Max < 0:
			g.most = -1
		case g.most >= 0:
			g.most += max(1, part.Max)
		}
	}
	return nil
}

// optional reports whether a part is some characters of a class, or none.
func optional(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpStar, syntax.OpQuest:
		return re.Sub[0].Op == syntax.OpCharClass
	case syntax.OpRepeat:
		return re.Min == 0 && re.Sub[0].Op == syntax.OpCharClass
	}
	return false
}

// firsts adds the bytes that a match can begin with, and reports whether it can
// be empty. Of what it does not know, it is all.
func (s *byteSet) firsts(re *syntax.Regexp) (nullable bool) {
	switch re.Op {
	case syntax.OpLiteral:
		s.add(re.Rune[0], re.Rune[0])
		s.add(unicode.ToLower(re.Rune[0]), unicode.ToLower(re.Rune[0]))
		s.add(unicode.ToUpper(re.Rune[0]), unicode.ToUpper(re.Rune[0]))
		return false
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			s.add(re.Rune[i], re.Rune[i+1])
		}
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return s.firsts(re.Sub[0])
	case syntax.OpStar, syntax.OpQuest:
		s.firsts(re.Sub[0])
		return true
	case syntax.OpRepeat:
		return s.firsts(re.Sub[0]) || re.Min == 0
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			nullable = s.firsts(sub) || nullable
		}
		return nullable
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if !s.firsts(sub) {
				return false
			}
		}
		return true
	}
	s.add(0, unicode.MaxASCII)
	return true
}

func (s *byteSet) add(from, to rune) {
	for r := from; r <= min(to, unicode.MaxASCII); r++ {
		s[r] = true
	}
}

// fits reports whether what follows a word may be what must follow it.
func (g *gap) fits(text string) bool {
	if g == nil {
		return true
	}
	for i := range len(text) {
		c := text[i]
		if c > unicode.MaxASCII || g.after[c] {
			return true
		}
		if !g.between[c] || i == g.most {
			return false
		}
	}
	return false
}
