package hostname

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Pattern is one name, or every name below one: *.example.com is a.example.com
// and a.b.example.com, and never example.com.
type Pattern struct {
	Name     string // canonical; what follows the *. of a wildcard
	Wildcard bool
}

const star = "*."

// The reasons why a pattern is refused.
var (
	ErrEverything = errors.New("it would match every name")
	ErrSuffix     = errors.New("it would match the names of everyone who can register one there")
)

// ParsePattern reads a pattern that allows something: a public suffix, below
// which strangers register names, is refused.
func ParsePattern(text string) (Pattern, error) {
	p, err := ParseWidePattern(text)
	if err != nil {
		return p, err
	}
	suffix, registry := publicsuffix.PublicSuffix(p.Name)
	switch {
	case p.Wildcard && suffix == p.Name:
		return p, fmt.Errorf("%q is a public suffix: %w", p.Name, ErrSuffix)
	case suffix == p.Name && registry:
		return p, fmt.Errorf("%q is a public suffix, not the name of a host", p.Name)
	}
	return p, nil
}

// ParseWidePattern reads a pattern that allows nothing by itself, such as one
// of names that are denied. Public suffixes may be in it, and * alone may not.
func ParseWidePattern(text string) (Pattern, error) {
	if text == "*" || text == "*." || text == "*.*" || text == "**" {
		return Pattern{}, ErrEverything
	}
	rest, wildcard := strings.CutPrefix(text, star)
	if strings.Contains(rest, "*") {
		return Pattern{}, errors.New("* stands for whole labels at the beginning only, as in *.example.com")
	}
	name, err := Canonical(rest)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{Name: name, Wildcard: wildcard}, nil
}

// ParsePatternPort reads NAME, *.NAME or either with :PORT, as ParsePattern does.
// Without a port it is 0.
func ParsePatternPort(text string) (Pattern, int, error) { return withPort(text, ParsePattern) }

// ParseWidePatternPort is ParsePatternPort with ParseWidePattern.
func ParseWidePatternPort(text string) (Pattern, int, error) {
	return withPort(text, ParseWidePattern)
}

func withPort(text string, parse func(string) (Pattern, error)) (Pattern, int, error) {
	if strings.Contains(text, "/") {
		return Pattern{}, 0, errors.New("it is a URL or a path")
	}
	host, port, err := SplitPort(text)
	if err != nil {
		return Pattern{}, 0, err
	}
	p, err := parse(host)
	return p, port, err
}

// String is the pattern as it is written in a rule.
func (p Pattern) String() string {
	if p.Wildcard {
		return star + p.Name
	}
	return p.Name
}

// Match reports whether a canonical name fits.
func (p Pattern) Match(name string) bool {
	if !p.Wildcard {
		return name == p.Name
	}
	before, ok := strings.CutSuffix(name, p.Name)
	return ok && len(before) > 1 && before[len(before)-1] == '.'
}

// Covers reports whether every name of the other pattern fits this one.
func (p Pattern) Covers(other Pattern) bool {
	if !other.Wildcard {
		return p.Match(other.Name)
	}
	return p.Wildcard && (p.Name == other.Name || p.Match(other.Name))
}

// Above yields the names that wildcards for a canonical name may have, the
// longest first: example.com and com for a.example.com.
func Above(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			_, rest, ok := strings.Cut(name, ".")
			if !ok || !yield(rest) {
				return
			}
			name = rest
		}
	}
}
