package main

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/logging"
)

// maxLeaks is how many of one text are told.
const maxLeaks = 20

// maxDepth is how often what is encoded is decoded.
const maxDepth = 2

// maxNarrow is how many narrow detectors are kept.
const maxNarrow = 256

type leak struct {
	Rule string `json:"rule"`
	Line int    `json:"line"` // from 1
}

// finder asks the library, and only for what a text may hold: its rules are two
// hundred expressions, and most texts have nothing to do with any of them. Its
// methods may be called at once.
type finder struct {
	sieve  *sieve
	config config.Config
	mu     sync.Mutex
	narrow map[string]*detect.Detector // by the rules that they know, and how deep they look
}

// newFinder takes the library's own rules.
func newFinder() (*finder, error) {
	const silent = 7
	logging.Logger = logging.Logger.Level(silent)
	detector, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		return nil, err
	}
	return &finder{sieve: newSieve(detector.Config.Rules), config: detector.Config, narrow: map[string]*detect.Detector{}}, nil
}

// find gives the rules no path: some pass over files by their names, which the
// agent chose too. Zeros are left out, so that what is written in two-byte
// characters is still words.
func (f *finder) find(text string) []leak {
	text = strings.ReplaceAll(text, "\x00", "")
	leaks := []leak{}
	rules, depth := f.sieve.rules(text, maxDepth)
	if len(rules) == 0 {
		return leaks
	}
	for _, found := range f.detector(rules, depth).Detect(detect.Fragment{Raw: text}) {
		if len(leaks) == maxLeaks {
			break
		}
		leaks = append(leaks, leak{Rule: found.RuleID, Line: found.StartLine + 1})
	}
	return leaks
}

// detector knows these rules and no others, and decodes only so often. The comments with which a text asks
// to be passed over are ignored: the agent wrote them.
func (f *finder) detector(rules []string, depth int) *detect.Detector {
	name := fmt.Sprint(depth, rules)
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.narrow[name]; known != nil {
		return known
	}
	fresh := detect.NewDetector(f.narrowed(rules))
	fresh.IgnoreGitleaksAllow = true
	fresh.MaxDecodeDepth = depth
	if len(f.narrow) == maxNarrow {
		clear(f.narrow)
	}
	f.narrow[name] = fresh
	return fresh
}

func (f *finder) narrowed(rules []string) config.Config {
	narrow := f.config
	narrow.Rules, narrow.Keywords = map[string]config.Rule{}, map[string]struct{}{}
	for _, id := range rules {
		rule := f.config.Rules[id]
		narrow.Rules[id] = rule
		if len(rule.RequiredRules) > 0 { // it asks for others
			narrow.Rules = maps.Clone(f.config.Rules)
		}
	}
	for _, rule := range narrow.Rules {
		for _, word := range rule.Keywords {
			narrow.Keywords[strings.ToLower(word)] = struct{}{}
		}
	}
	return narrow
}
