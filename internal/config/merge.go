package config

import (
	"maps"
	"slices"
	"strconv"
)

// merge brings the three levels of one agent together and notes for each value
// which level gave it.
type merge struct {
	cfg     *Config
	agent   *agentFile    // never nil
	global  *defaultsFile // never nil
	agentAt *path         // where the agent is written; nil if it is not
	origins map[string]Origin
}

var globalAt = (*path)(nil).under("agents.defaults")

// The levels that a value can come from.
const (
	fromAgent   = "agent"
	fromGlobal  = "global"
	fromDefault = "default"
	fromDerived = "derived"
)

// note records where the value at key, below the agent, was written.
func (m *merge) note(key, source string, at *path) {
	o := Origin{Source: source}
	if at != nil {
		o.Path, o.Line = at.String(), m.cfg.lineOf(at)
	}
	m.origins[key] = o
}

// written records a value of the agent or of agents.defaults.
func (m *merge) written(key, source, name string) {
	at := globalAt
	if source == fromAgent {
		at = m.agentAt
	}
	m.note(key, source, at.under(name))
}

// pick returns the agent's value, else the global one, else the default.
func pick[T any](m *merge, key string, agent, global *T, fallback T) T {
	return pickNamed(m, naming{key, key}, agent, global, fallback)
}

// naming is a value's key, and its name in the file where that differs.
type naming struct{ key, name string }

// pickNamed is pick for a value whose key in the file has another name.
func pickNamed[T any](m *merge, n naming, agent, global *T, fallback T) T {
	switch {
	case agent != nil:
		m.written(n.key, fromAgent, n.name)
		return *agent
	case global != nil:
		m.written(n.key, fromGlobal, n.name)
		return *global
	}
	m.note(n.key, fromDefault, nil)
	return fallback
}

// pickList is pick for lists, which replace each other as a whole.
func pickList[T any](m *merge, key string, agent, global, fallback []T) []T {
	switch {
	case agent != nil:
		m.written(key, fromAgent, key)
		return slices.Clone(agent)
	case global != nil:
		m.written(key, fromGlobal, key)
		return slices.Clone(global)
	}
	m.note(key, fromDefault, nil)
	return slices.Clone(fallback)
}

// joinMaps joins two levels of a map name by name; the agent's entries win. The
// defaults count only where the global level says nothing.
func joinMaps[T any](m *merge, key string, agent, global, fallback map[string]T) map[string]T {
	if agent == nil && global == nil && fallback == nil {
		m.note(key, fromDefault, nil)
		return nil
	}
	joined := map[string]T{}
	put := func(from map[string]T, source string) {
		maps.Copy(joined, from)
		for name := range from {
			if source == fromDefault {
				m.note(key+"."+name, source, nil)
				continue
			}
			at := globalAt
			if source == fromAgent {
				at = m.agentAt
			}
			m.note(key+"."+name, source, at.under(key).child(name))
		}
	}
	if global != nil {
		put(global, fromGlobal)
	} else {
		put(fallback, fromDefault)
	}
	put(agent, fromAgent)
	return joined
}

// concat joins two levels of a list, the global one first. The result is nil
// only if neither level wrote the list.
func concat(m *merge, key string, agent, global []string) []string {
	if agent == nil && global == nil {
		m.note(key, fromDefault, nil)
		return nil
	}
	joined := make([]string, 0, len(agent)+len(global))
	add := func(items []string, source string, at *path) {
		for i, item := range items {
			m.note(key+"["+strconv.Itoa(len(joined))+"]", source, at.under(key).item(i))
			joined = append(joined, item)
		}
	}
	add(global, fromGlobal, globalAt)
	add(agent, fromAgent, m.agentAt)
	if len(joined) == 0 {
		source := fromGlobal
		if agent != nil {
			source = fromAgent
		}
		m.written(key, source, key)
	}
	return joined
}
