package config

import (
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The file may list its agents in two ways, and name some settings in two.
// This file knows both; the rest of the package knows agents with ids.

const (
	// MainAgent is the agent of a file that names none.
	MainAgent = "main"
	// DirectoryAgent is the agent of sandboxes that belong to a directory of a person,
	// a session each. It needs no entry in the file.
	DirectoryAgent = "dir"
	// APIAgent is the agent of sandboxes that programs make through the gateway's API,
	// a session each. It needs no entry in the file.
	APIAgent = "api"
	// MaxAgentID is the longest agent id.
	MaxAgentID = 64
)

var (
	agentIDForm  = lazyregexp.Word{First: "A-Za-z0-9_", Rest: "A-Za-z0-9_-", Most: 64}
	notInAgentID = lazyregexp.New(`[^a-z0-9_-]+`)
)

// NormalizeAgentID returns the form in which ids are compared and appear in
// session keys: lower case, everything but letters, digits, '_' and '-'
// replaced, "main" if nothing is left.
func NormalizeAgentID(id string) string {
	id = strings.ToLower(strings.TrimSpace(id))
	if agentIDForm.MatchString(id) {
		return id
	}
	id = strings.Trim(notInAgentID.ReplaceAllString(id, "-"), "-")
	if id = id[:min(len(id), MaxAgentID)]; id == "" {
		return MainAgent
	}
	return id
}

// agentNode is one agent as the file lists it.
type agentNode struct {
	id      string // normalised
	at      *path
	offset  int   // of the agent's id
	node    *node // its settings
	listed  bool  // in agents.list, with an id of its own
	written *node // that id, if it is there
}

// agentNodes returns the agents of agents.list or agents.entries in the order
// of the file. What is not an object is left out: its type is reported elsewhere.
func agentNodes(at *path, agents *node) []agentNode {
	var all []agentNode
	if list := agents.get("list"); list != nil {
		for i, n := range list.items {
			if n.kind != '{' {
				continue
			}
			a := agentNode{at: at.child("list").item(i), offset: n.offset, node: n, listed: true, written: n.get("id")}
			if a.written != nil {
				a.id, a.offset = NormalizeAgentID(a.written.string()), a.written.offset
			}
			all = append(all, a)
		}
	}
	if entries := agents.get("entries"); entries != nil {
		for _, m := range entries.members {
			if m.value.kind == '{' {
				at := at.child("entries").child(m.key)
				all = append(all, agentNode{id: NormalizeAgentID(m.key), at: at, offset: m.offset, node: m.value})
			}
		}
	}
	return all
}

// legacyScope is what the old key perSession says, nil if it is not written.
func (s *sandboxFile) legacyScope() *Scope {
	if s == nil || s.PerSession == nil {
		return nil
	}
	scope := ScopeShared
	if *s.PerSession {
		scope = ScopeSession
	}
	return &scope
}
