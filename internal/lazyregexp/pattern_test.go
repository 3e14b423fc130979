package lazyregexp

import (
	"slices"
	"testing"
)

func TestPatternIsItsExpression(t *testing.T) {
	p := New(`^([a-z]+)-(\d+)$`)
	if p.String() != `^([a-z]+)-(\d+)$` || !p.MatchString("run-7") || p.MatchString("run") {
		t.Error(p)
	}
	if got := p.FindStringSubmatch("run-7"); !slices.Equal(got, []string{"run-7", "run", "7"}) {
		t.Error(got)
	}
	if got := New(`\d`).ReplaceAllString("a1b2", "#"); got != "a#b#" {
		t.Error(got)
	}
	if got := New(`(\d)`).FindAllStringSubmatch("1 2", -1); len(got) != 2 || got[1][1] != "2" {
		t.Error(got)
	}
}

func TestWrongExpressionPanicsWhenUsed(t *testing.T) {
	p := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("it was used")
		}
	}()
	p.MatchString("")
}
