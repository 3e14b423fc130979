package config

import (
	"reflect"
	"strings"
)

// Named is a program or a path of the host that the file names.
type Named struct {
	Place   string
	Command []string // a program with its arguments, or
	Path    string   // an absolute path
	Content bool     // what the path holds decides what is allowed
}

// Named returns every program and path of the host that the file names, in the
// order of the file.
func (c *Config) Named() []Named {
	if c.root == nil {
		return nil
	}
	w := namedWalk{cfg: c}
	w.value(nil, c.root, shapeOf(reflect.TypeFor[file](), limits{}))
	return w.found
}

type namedWalk struct {
	cfg   *Config
	found []Named
}

func (w *namedWalk) value(at *path, n *node, s *shape) {
	form := s.formFor(n)
	if form == nil {
		return
	}
	switch form.kind {
	case kindObject:
		for _, m := range n.members {
			if f := form.field(m.key); f != nil {
				w.member(at.child(m.key), m, form, f)
			}
		}
	case kindRecord:
		for _, m := range n.members {
			w.value(at.child(m.key), m.value, form.elem)
		}
	case kindList:
		for i, item := range n.items {
			w.value(at.item(i), item, form.elem)
		}
	case kindText:
		w.text(at, n.text, form.check)
	}
}

// member looks into one key; the words of a command belong together.
func (w *namedWalk) member(at *path, m member, s *shape, f *field) {
	if s.goType != reflect.TypeFor[llmKeyFile]() || m.key != "command" {
		w.value(at, m.value, f.shape)
		return
	}
	named := Named{Place: at.String()}
	for _, item := range m.value.items {
		named.Command = append(named.Command, item.text)
	}
	w.found = append(w.found, named)
}

// text notes a text that is a path of the host, by the check that it has.
func (w *namedWalk) text(at *path, text, check string) {
	switch check {
	case "hostPath":
	case "profile":
		if at.key != "seccompProfile" {
			return // a name
		}
	case "bind":
		text, _, _ = strings.Cut(text, ":")
	case "repository":
		if !isDirectory(text) {
			return
		}
	default:
		return
	}
	if host, err := w.cfg.hostPath(text); err == nil {
		w.found = append(w.found, Named{Place: at.String(), Path: host, Content: check == "profile"})
	}
}
