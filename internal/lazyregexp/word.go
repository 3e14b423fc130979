package lazyregexp

import (
	"strconv"
	"strings"
)

// Word is a name that begins with one of First and goes on with any of Rest, up
// to Most bytes in all. It says what ^[First][Rest]{0,Most-1}$ says, and there is
// nothing to compile: names are checked in every command.
type Word struct {
	First, Rest string // sets of ASCII characters, with ranges: "a-z0-9_-"
	Most        int    // 0 is no limit
}

// MatchString tells whether s is such a name.
func (w Word) MatchString(s string) bool {
	if s == "" || w.Most > 0 && len(s) > w.Most || !inSet(w.First, s[0]) {
		return false
	}
	for i := 1; i < len(s); i++ {
		if !inSet(w.Rest, s[i]) {
			return false
		}
	}
	return true
}

// inSet looks a character up. A dash at an end of the set means itself.
func inSet(set string, c byte) bool {
	for set != "" {
		if len(set) > 2 && set[1] == '-' {
			if set[0] <= c && c <= set[2] {
				return true
			}
			set = set[3:]
			continue
		}
		if set[0] == c {
			return true
		}
		set = set[1:]
	}
	return false
}

// String is the expression that says the same.
func (w Word) String() string {
	var b strings.Builder
	b.WriteString("^[" + w.First + "][" + w.Rest + "]")
	if w.Most == 0 {
		b.WriteString("*$")
	} else {
		b.WriteString("{0," + strconv.Itoa(w.Most-1) + "}$")
	}
	return b.String()
}
