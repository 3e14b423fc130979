package config

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/config/shape"
)

// Project is what a file that was found in a project says without being
// trusted: it can take away from a configuration and never add to it.
type Project struct {
	Path string
	// Ignored are the places in the file that count only when it is trusted,
	// those with the most power first.
	Ignored []Request

	limits projectLimits
}

// Request is one setting of a project's file that counts only when the file is
// trusted.
type Request struct {
	Path  string `json:"path"`
	Line  int    `json:"line"`
	Value string `json:"value"` // as JSON
	Risky bool   `json:"risky"` // it can reach the host, its secrets or the network
}

// projectLimits is the part of a project's file that takes away.
type projectLimits struct {
	file   file
	agents []agentEntry
}

// ParseProject reads a project's file that is not trusted. No variable of the
// environment is expanded in it.
func ParseProject(name string, src []byte, env Environment) (*Project, error) {
	env.Getenv = nil
	parsed, err := Parse(name, src, env)
	if err != nil {
		return nil, err
	}
	return projectOf(parsed)
}

// projectOf splits a file into what takes away and what needs trust.
func projectOf(parsed *Config) (*Project, error) {
	f := filter{doc: parsed.doc}
	kept := f.object(nil, parsed.root, shape.Of(reflect.TypeFor[file](), shape.Limits{}))
	slices.SortStableFunc(f.dropped, riskyFirst)
	p := &Project{Path: parsed.path, Ignored: f.dropped}
	return p, p.limits.decode(kept)
}

// riskyFirst orders requests for people, who may not read all of them.
func riskyFirst(a, b Request) int {
	switch {
	case a.Risky == b.Risky:
		return a.Line - b.Line
	case a.Risky:
		return -1
	}
	return 1
}

// decode fills the Go types from what is left of the file.
func (n *projectLimits) decode(kept *node) error {
	if err := json.Unmarshal(kept.json(), &n.file); err != nil {
		return err
	}
	for _, a := range agentNodes(nil, kept.get("agents")) {
		entry := agentEntry{id: a.id}
		if err := json.Unmarshal(a.node.json(), &entry.agentFile); err != nil {
			return err
		}
		n.agents = append(n.agents, entry)
	}
	return nil
}

// filter keeps of a file what its rules let count, and collects the rest.
type filter struct {
	doc     *json5.Document
	dropped []Request
}

// object returns the members of an object that count.
func (f *filter) object(at *path, n *node, s *shape.Shape) *node {
	kept := &node{kind: '{', offset: n.offset}
	for _, m := range n.members {
		if value := f.member(at.child(m.key), m, s); value != nil {
			kept.members = append(kept.members, member{m.key, m.offset, value})
		}
	}
	return kept
}

// member returns what counts of one member, or nil.
func (f *filter) member(at *path, m member, s *shape.Shape) *node {
	typeName := defName(s.GoType)
	known := s.Field(m.key)
	rule := ruleOf(typeName, m.key)
	switch {
	case known == nil:
		return nil // another program's: it has no effect in any file
	case rule == ruleWithin:
		return f.within(at, m.value, known.Shape)
	case rule == ruleWord && m.value.kind == '{':
		return f.words(at, m.value, typeName+"."+m.key)
	case rule.counts(typeName+"."+m.key, m.value):
		return m.value
	}
	f.drop(at, m, rule != ruleTrust)
	return nil
}

// within filters the objects in a value: the value itself, a list's or a record's.
func (f *filter) within(at *path, n *node, s *shape.Shape) *node {
	kept := &node{kind: n.kind, offset: n.offset}
	switch s.Kind {
	case shape.KindObject:
		return f.object(at, n, s)
	case shape.KindList:
		for i, item := range n.items {
			kept.items = append(kept.items, f.within(at.item(i), item, s.Elem))
		}
	case shape.KindRecord:
		for _, m := range n.members {
			kept.members = append(kept.members, member{m.key, m.offset, f.within(at.child(m.key), m.value, s.Elem)})
		}
	}
	return kept
}

// words keeps the members of a record whose values are strict words.
func (f *filter) words(at *path, n *node, place string) *node {
	kept := &node{kind: '{', offset: n.offset}
	for _, m := range n.members {
		if !ruleWord.counts(place, m.value) {
			f.drop(at.child(m.key), m, true)
			continue
		}
		kept.members = append(kept.members, m)
	}
	return kept
}

// drop notes a setting that counts only in a trusted file.
func (f *filter) drop(at *path, m member, risky bool) {
	f.dropped = append(f.dropped, Request{
		Path: at.String(), Line: f.doc.Position(m.offset).Line, Value: string(m.value.json()), Risky: risky,
	})
}

// String is the request in one line.
func (r Request) String() string { return fmt.Sprintf("%s: %s", r.Path, r.Value) }
