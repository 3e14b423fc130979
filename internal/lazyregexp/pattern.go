// Package lazyregexp holds regular expressions that are compiled when they are
// first used. A program with dozens of them would otherwise compile all before
// each of its commands, most of which use none.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression that may not be compiled yet. It is safe for
// concurrent use.
type Pattern struct {
	expr    string
	compile func() *regexp.Regexp
}

// New returns the pattern of an expression. One that is wrong panics when it is
// first used, as regexp.MustCompile does at once.
func New(expr string) *Pattern {
	return &Pattern{expr, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// String is the expression.
func (p *Pattern) String() string { return p.expr }

// MatchString is regexp.Regexp's.
func (p *Pattern) MatchString(s string) bool { return p.compile().MatchString(s) }

// FindStringSubmatch is regexp.Regexp's.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compile().FindStringSubmatch(s) }

// FindAllStringSubmatch is regexp.Regexp's.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compile().FindAllStringSubmatch(s, n)
}

// ReplaceAllString is regexp.Regexp's.
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.compile().ReplaceAllString(s, with)
}

// ReplaceAllStringFunc is regexp.Regexp's.
func (p *Pattern) ReplaceAllStringFunc(s string, with func(string) string) string {
	return p.compile().ReplaceAllStringFunc(s, with)
}

// ReplaceAll is regexp.Regexp's.
func (p *Pattern) ReplaceAll(b, with []byte) []byte { return p.compile().ReplaceAll(b, with) }
