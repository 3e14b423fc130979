// Package edit changes values of a JSON5 text by their positions: comments, the order of
// keys, and everything that is not named stay as they are, byte for byte.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config/json5"
)

// Set returns the text with a value at a path of keys. Objects that the path lacks are
// made. A text that has the value already is returned as it is.
func Set(src []byte, path []string, value any) ([]byte, error) {
	if len(path) == 0 {
		return nil, errors.New("no key is named")
	}
	if _, err := json5.Parse(src); err != nil {
		return nil, err
	}
	want, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	s := &scanner{src: src}
	s.space()
	out, err := s.set(path, want)
	if err != nil {
		return nil, err
	}
	_, err = json5.Parse(out)
	return out, err
}

// set changes the object at the scanner's position.
func (s *scanner) set(path []string, want []byte) ([]byte, error) {
	if s.at >= len(s.src) || s.src[s.at] != '{' {
		return nil, fmt.Errorf("what should have the key %q is no object", path[0])
	}
	object := s.object()
	for _, m := range object.members {
		if m.key != path[0] {
			continue
		}
		if len(path) > 1 {
			inner := &scanner{src: s.src, at: m.start}
			return inner.set(path[1:], want)
		}
		return replace(s.src, m.start, m.end, want)
	}
	for i := len(path) - 1; i > 0; i-- {
		key, _ := json.Marshal(path[i])
		want = bytes.Join([][]byte{[]byte("{"), key, []byte(": "), want, []byte("}")}, nil)
	}
	return s.insert(object, path[0], want), nil
}

// replace puts a value in the place of another one, unless both mean the same.
func replace(src []byte, start, end int, want []byte) ([]byte, error) {
	old, err := json5.Parse(src[start:end])
	if err != nil {
		return nil, err
	}
	if same(old.JSON, want) {
		return src, nil
	}
	return splice(src, start, end, string(want)), nil
}

func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// insert adds a member at the end of an object, on a line of its own if the object has
// several lines.
func (s *scanner) insert(o object, key string, value []byte) []byte {
	name, _ := json.Marshal(key)
	member := string(name) + ": " + string(value)
	line := bytes.LastIndexByte(s.src[:o.end], '\n') + 1
	if line <= o.start { // on one line
		switch {
		case len(o.members) == 0, o.trailing:
			return splice(s.src, o.end, o.end, member)
		}
		last := o.members[len(o.members)-1].end
		return splice(s.src, last, last, ", "+member)
	}
	indent := indentOf(s.src, o)
	place := line
	if strings.TrimSpace(string(s.src[line:o.end])) != "" { // the brace is not alone on its line
		place, member = o.end, "\n"+indent+member
	} else {
		member = indent + member
	}
	out := splice(s.src, place, place, member+",\n")
	if len(o.members) > 0 && !o.trailing {
		last := o.members[len(o.members)-1].end
		out = splice(out, last, last, ",")
	}
	return out
}

// indentOf returns the white space before the first member of an object.
func indentOf(src []byte, o object) string {
	outer := lineIndent(src, o.start)
	if len(o.members) == 0 {
		return outer + "  "
	}
	first := lineIndent(src, o.members[0].keyAt)
	if len(first) <= len(outer) {
		return outer + "  "
	}
	return first
}

func lineIndent(src []byte, at int) string {
	line := src[bytes.LastIndexByte(src[:at], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

func splice(src []byte, start, end int, text string) []byte {
	return append(append(append(make([]byte, 0, len(src)+len(text)), src[:start]...), text...), src[end:]...)
}
