package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect/codec"
)

// sieve tells quickly which rules a text may break, so that the library looks
// only for those. It may name a rule too many and never one too few: the library
// decides, on the whole text and as ever.
type sieve struct {
	kinds    *kinds
	words    *automaton
	anchored [][]check // by word
	others   []config.Rule
	all      []string // the ids of all rules
}

// check is a rule that may be broken where a word is.
type check struct {
	rule   string
	length int // of the word
	anchor *anchor
}

func newSieve(rules map[string]config.Rule) *sieve {
	s := &sieve{kinds: newKinds()}
	byWord := map[string][]check{}
	for id, rule := range rules {
		s.all = append(s.all, id)
		if rule.Regex == nil {
			continue // it is about paths, and there are none
		}
		a, ok := anchorOf(rule.Regex.String())
		if !ok {
			s.others = append(s.others, rule)
			continue
		}
		for _, word := range a.words {
			byWord[word] = append(byWord[word], check{id, len(word), a})
		}
	}
	var words []string
	for word, checks := range byWord {
		words, s.anchored = append(words, word), append(s.anchored, checks)
	}
	s.words = newAutomaton(words)
	return s
}

// rules names the rules that a text may break, also where it is encoded, and how
// often there is something to decode, up to a depth.
func (s *sieve) rules(text string, most int) (ids []string, depth int) {
	found := map[string]bool{}
	decoder, segments := codec.NewDecoder(), []*codec.EncodedSegment{}
	for ; ; depth++ {
		if foreign(text) {
			return s.all, most
		}
		s.look(text, found)
		if depth == most || !s.kinds.encoded(text) {
			break
		}
		if text, segments = decoder.Decode(text, segments); len(segments) == 0 {
			break
		}
	}
	return slices.Sorted(maps.Keys(found)), depth
}

// foreign reports whether a text has characters that are not ASCII and yet count
// as letters that are. Nearly none does.
func foreign(text string) bool {
	return strings.Contains(text, "ſ") || strings.Contains(text, "\u212a")
}

func (s *sieve) look(text string, found map[string]bool) {
	s.words.each(text, func(word int32, end int) {
		for i := range s.anchored[word] {
			c := &s.anchored[word][i]
			if c.anchor.gap.fits(text[end:]) && !found[c.rule] && c.anchor.matches()(text[end-c.length:]) {
				found[c.rule] = true
			}
		}
	})
	small := ""
	for i := range s.others {
		rule := &s.others[i]
		if found[rule.RuleID] {
			continue
		}
		if small == "" {
			small = strings.ToLower(text)
		}
		if named(rule, small) && rule.Regex.MatchString(text) {
			found[rule.RuleID] = true
		}
	}
}

// named reports whether a text has a word without which the library does not
// look for the rule.
func named(rule *config.Rule, small string) bool {
	return len(rule.Keywords) == 0 || slices.ContainsFunc(rule.Keywords, func(word string) bool {
		return strings.Contains(small, strings.ToLower(word))
	})
}
