package config

import (
	"reflect"
	"strings"

	"github.com/atoll-run/atoll/internal/config/shape"
	"github.com/atoll-run/atoll/internal/config/textcheck"
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
	w.value(nil, c.root, shape.Of(reflect.TypeFor[file](), shape.Limits{}))
	return w.found
}

type namedWalk struct {
	cfg   *Config
	found []Named
}

func (w *namedWalk) value(at *path, n *node, s *shape.Shape) {
	form := s.FormFor(n.kind)
	if form == nil {
		return
	}
	switch form.Kind {
	case shape.KindObject:
		for _, m := range n.members {
			if f := form.Field(m.key); f != nil {
				w.member(at.child(m.key), m, form, f)
			}
		}
	case shape.KindRecord:
		for _, m := range n.members {
			w.value(at.child(m.key), m.value, form.Elem)
		}
	case shape.KindList:
		for i, item := range n.items {
			w.value(at.item(i), item, form.Elem)
		}
	case shape.KindText:
		w.text(at, n.text, form.Check)
	}
}

// member looks into one key; the words of a command belong together.
func (w *namedWalk) member(at *path, m member, s *shape.Shape, f *shape.Field) {
	isSource := s.GoType == reflect.TypeFor[llmKeyFile]() || s.GoType == reflect.TypeFor[secretSourceFile]()
	if !isSource || m.key != "command" {
		w.value(at, m.value, f.Shape)
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
		if !textcheck.IsDirectory(text) {
			return
		}
	default:
		return
	}
	if host, err := w.cfg.hostPath(text); err == nil {
		w.found = append(w.found, Named{Place: at.String(), Path: host, Content: check == "profile"})
	}
}
