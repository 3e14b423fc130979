package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
)

func openFinder(t testing.TB) *finder {
	t.Helper()
	f, err := newFinder()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// plain is the library without anything of ours before it.
func plain(t testing.TB) func(string) []leak {
	t.Helper()
	detector, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	detector.IgnoreGitleaksAllow = true
	detector.MaxDecodeDepth = maxDepth
	return func(text string) []leak {
		leaks := []leak{}
		for _, found := range detector.Detect(detect.Fragment{Raw: strings.ReplaceAll(text, "\x00", "")}) {
			leaks = append(leaks, leak{Rule: found.RuleID, Line: found.StartLine + 1})
		}
		return leaks
	}
}

func sorted(leaks []leak) []leak {
	slices.SortFunc(leaks, func(a, b leak) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), a.Line-b.Line) })
	return leaks
}

// invent writes something that an expression matches.
func invent(b *bytes.Buffer, random *rand.Rand, re *syntax.Regexp) {
	some := func(least, most int) {
		if most < 0 {
			most = least + 3
		}
		for range least + random.IntN(most-least+1) {
			invent(b, random, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		at := random.IntN(len(re.Rune)/2) * 2
		b.WriteRune(re.Rune[at] + rune(random.IntN(min(64, int(re.Rune[at+1]-re.Rune[at])+1))))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte(byte(' ' + random.IntN(90)))
	case syntax.OpCapture:
		invent(b, random, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			invent(b, random, sub)
		}
	case syntax.OpAlternate:
		invent(b, random, re.Sub[random.IntN(len(re.Sub))])
	case syntax.OpStar:
		some(0, 3)
	case syntax.OpPlus:
		some(1, 4)
	case syntax.OpQuest:
		some(0, 1)
	case syntax.OpRepeat:
		some(re.Min, re.Max)
	}
}

// disguises are the forms in which the same may stand in a text.
func disguises(random *rand.Rand, rule config.Rule, text string) []string {
	damaged := []byte(text)
	damaged[random.IntN(len(damaged))] ^= 1
	word := ""
	if len(rule.Keywords) > 0 {
		word = rule.Keywords[random.IntN(len(rule.Keywords))]
	}
	return []string{
		text, "x" + text + "x", "\n\n" + text + "\n" + word, word + " = \"" + text + "\"\n", strings.ToUpper(text), string(damaged),
		"a\n" + base64.StdEncoding.EncodeToString([]byte(text)), hex.EncodeToString([]byte(text)), url.QueryEscape(text) + "\n",
		base64.RawURLEncoding.EncodeToString([]byte("b " + hex.EncodeToString([]byte(text)))),
		strings.ReplaceAll(text, "k", "\u212a"), strings.ReplaceAll(text, "S", "ſ"), strings.Join(strings.Split(text, ""), "\x00"),
		"%02" + base64.StdEncoding.EncodeToString([]byte(text)) + " %7g%de%0" + text, word + "\n" + fmt.Sprintf("\\u%04x", text[0]) + text[1:], text + " " + word + " U+0041 aU+0042 é " + text[len(text)/2:],
	}
}

// What is found is what the library finds by itself: for texts made out of every
// rule, damaged ones, encoded ones, and for the files of this tree.
func TestSameAsLibrary(t *testing.T) {
	f, library := openFinder(t), plain(t)
	texts, hits := 0, map[string]bool{}
	compare := func(text string) {
		texts++
		want, got := sorted(library(text)), sorted(f.find(text))
		for _, found := range want {
			hits[found.Rule] = true
		}
		if !slices.Equal(got, want[:min(len(want), len(got))]) || len(got) < min(len(want), maxLeaks) {
			t.Errorf("found %v instead of %v in %q", got, want, text)
		}
	}
	random := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // the same texts every time
	for _, id := range slices.Sorted(ids(f.config.Rules)) {
		rule := f.config.Rules[id]
		if rule.Regex == nil {
			continue
		}
		re, err := syntax.Parse(rule.Regex.String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			var b bytes.Buffer
			invent(&b, random, re)
			for _, text := range disguises(random, rule, b.String()) {
				compare(text)
			}
		}
	}
	for _, text := range tree(t) {
		compare(text)
	}
	if len(hits) < 200 || texts < 10_000 {
		t.Errorf("%d texts break %d rules: they test nothing", texts, len(hits))
	}
}

func ids(rules map[string]config.Rule) func(func(string) bool) {
	return func(yield func(string) bool) {
		for id := range rules {
			if !yield(id) {
				return
			}
		}
	}
}

// tree is what this project is written in.
func tree(t testing.TB) (texts []string) {
	t.Helper()
	err := filepath.WalkDir("../docs", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		texts = append(texts, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// Nearly every rule is looked for by its words; what is left costs an expression
// for each text.
func TestSieveKnowsTheRules(t *testing.T) {
	f := openFinder(t)
	for _, rule := range f.sieve.others {
		t.Logf("%s: %v", rule.RuleID, rule.Keywords)
		if len(rule.Keywords) == 0 {
			t.Errorf("%s is looked for in every text", rule.RuleID)
		}
	}
	if len(f.sieve.others) > 12 {
		t.Errorf("%d rules are not looked for by their words", len(f.sieve.others))
	}
}

func BenchmarkFind(b *testing.B) {
	f, library := openFinder(b), plain(b)
	texts := tree(b)
	for name, find := range map[string]func(string) []leak{"sieve": f.find, "library": library} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				n := 0
				for _, text := range texts {
					find(text)
					n += len(text)
				}
				b.SetBytes(int64(n))
			}
		})
	}
}
