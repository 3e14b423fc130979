package main

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// Bounds of the beginnings that are made out of an expression.
const (
	shortest   = 2  // bytes; a shorter beginning is everywhere
	mostBegins = 32 // beginnings of one expression
	mostRunes  = 8  // characters of a class that is written out
)

// begins is how the matches of an expression begin, in small letters. If it is
// exact, they are these and nothing else.
type begins struct {
	texts []string
	exact bool
}

// beginsOf never leaves a beginning out: where it does not know, it is "".
func beginsOf(re *syntax.Regexp) begins {
	switch re.Op {
	case syntax.OpLiteral:
		return ofLiteral(string(re.Rune))
	case syntax.OpCharClass:
		return ofClass(re.Rune)
	case syntax.OpCapture:
		return beginsOf(re.Sub[0])
	case syntax.OpConcat:
		return ofConcat(re.Sub)
	case syntax.OpAlternate:
		return ofAlternate(re.Sub)
	case syntax.OpQuest:
		inner := beginsOf(re.Sub[0])
		return begins{append(inner.texts, ""), inner.exact}
	case syntax.OpPlus:
		return begins{beginsOf(re.Sub[0]).texts, false}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return begins{beginsOf(re.Sub[0]).texts, false}
		}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary:
		return begins{[]string{""}, true}
	}
	return begins{[]string{""}, false}
}

func ofLiteral(text string) begins {
	if !isASCII(text) {
		return begins{[]string{""}, false}
	}
	return begins{[]string{strings.ToLower(text)}, true}
}

// ofClass writes a small class out. What is not ASCII is left to who looks for
// it: see folds.
func ofClass(ranges []rune) begins {
	seen := map[string]bool{}
	var texts []string
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if folds(r) {
				continue
			}
			text := string(unicode.ToLower(r))
			if len(texts) == mostRunes || r > unicode.MaxASCII {
				return begins{[]string{""}, false}
			}
			if !seen[text] {
				seen[text] = true
				texts = append(texts, text)
			}
		}
	}
	return begins{texts, true}
}

func ofConcat(parts []*syntax.Regexp) begins {
	all := begins{[]string{""}, true}
	for _, part := range parts {
		next := beginsOf(part)
		if len(all.texts)*len(next.texts) > mostBegins {
			return begins{all.texts, false}
		}
		var longer []string
		for _, head := range all.texts {
			for _, tail := range next.texts {
				longer = append(longer, head+tail)
			}
		}
		all = begins{longer, next.exact}
		if !all.exact {
			break
		}
	}
	return all
}

func ofAlternate(parts []*syntax.Regexp) begins {
	all := begins{exact: true}
	for _, part := range parts {
		one := beginsOf(part)
		all.texts, all.exact = append(all.texts, one.texts...), all.exact && one.exact
	}
	if len(all.texts) > mostBegins {
		return begins{[]string{""}, false}
	}
	return all
}

// least is the length of the shortest beginning.
func (b begins) least() int {
	if len(b.texts) == 0 {
		return 0
	}
	n := len(b.texts[0])
	for _, text := range b.texts {
		n = min(n, len(text))
	}
	return n
}

// folds reports whether a character that is not ASCII counts as a letter that is,
// where case does not.
func folds(r rune) bool { return r == 'ſ' || r == '\u212a' }

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
}
