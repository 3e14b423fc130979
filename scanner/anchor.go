package main

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
)

// anchor is a part of a rule's expression that begins with one of a few words. A
// text in which it matches nowhere, the rule does not match either.
type anchor struct {
	words []string // in small letters
	gap   *gap     // what is after them, if that is known
	// matches reports whether a text begins so. It is made when it is first asked:
	// most never are.
	matches func() func(string) bool
}

// anchorOf finds the part with the longest words. It leaves out what is before
// that part, so it may match where the rule does not; never the other way round.
func anchorOf(expression string) (*anchor, bool) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil || has(re, syntax.OpNoWordBoundary) {
		return nil, false
	}
	parts := flat(re)
	best, words := -1, begins{}
	for i := range parts {
		if b := ofConcat(parts[i:]); b.least() > words.least() {
			best, words = i, b
		}
	}
	if words.least() < shortest {
		return nil, false
	}
	after := gapOf(parts[best+whole(parts[best:], words):])
	slices.Sort(words.texts)
	return &anchor{slices.Compact(words.texts), after, sync.OnceValue(func() func(string) bool { return matcher(parts[best:]) })}, true
}

// whole is how many parts the words are, to their ends; all of them if that is
// not known.
func whole(parts []*syntax.Regexp, words begins) int {
	for n := range len(parts) {
		if b := ofConcat(parts[:n]); b.exact && slices.Equal(b.texts, words.texts) {
			return n
		}
	}
	return len(parts)
}

// matcher matches at the beginning of a text, and everywhere if it cannot be made.
func matcher(parts []*syntax.Regexp) func(string) bool {
	rest, err := regexp.Compile(`\A(?:` + loosen(&syntax.Regexp{Op: syntax.OpConcat, Sub: parts}).String() + `)`)
	if err != nil {
		return func(string) bool { return true }
	}
	return rest.MatchString
}

func has(re *syntax.Regexp, op syntax.Op) bool {
	return re.Op == op || slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return has(sub, op) })
}

// flat is what an expression is a sequence of, groups opened.
func flat(re *syntax.Regexp) []*syntax.Regexp {
	if re.Op == syntax.OpCapture {
		return flat(re.Sub[0])
	}
	if re.Op != syntax.OpConcat {
		return []*syntax.Regexp{re}
	}
	var parts []*syntax.Regexp
	for _, sub := range re.Sub {
		parts = append(parts, flat(sub)...)
	}
	return parts
}

// loosen lets an expression match without what was before it: what it says there
// of the place where it begins is left out, and so are the groups.
func loosen(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpWordBoundary, syntax.OpBeginLine, syntax.OpBeginText:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch}
	case syntax.OpCapture:
		return loosen(re.Sub[0])
	case syntax.OpConcat:
		return looseHead(re)
	}
	loose := *re
	loose.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		loose.Sub[i] = loosen(sub)
	}
	return &loose
}

// looseHead loosens a sequence up to the first part that takes something.
func looseHead(re *syntax.Regexp) *syntax.Regexp {
	loose := *re
	loose.Sub = slices.Clone(re.Sub)
	for i, sub := range loose.Sub {
		loose.Sub[i] = loosen(sub)
		if b := beginsOf(sub); b.least() > 0 {
			break
		}
	}
	return &loose
}
