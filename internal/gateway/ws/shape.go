package ws

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// shape is a closed object: members that it does not name are refused.
type shape []field

// field is a member of an object.
type field struct {
	name string
	kind kind
	need bool
	null bool // may be null, which clears the setting
	min  int64
	max  int64 // 0 is none
	enum []string
	in   shape
	v4   bool // version 4 only
}

type kind string

const (
	text     kind = "string"
	word     kind = "word" // a string that is not empty
	flag     kind = "boolean"
	integer  kind = "integer"
	object   kind = "object"
	list     kind = "array"
	words    kind = "words"  // an array of words
	record   kind = "record" // an object with any members
	anything kind = "any"
)

// checker collects faults, in the words of each version.
type checker struct {
	version int
	wrong   []string
}

// check returns the faults of an object, or "". Numbers, keys and nesting were
// bounded when the value was read.
func (s shape) check(version int, value jsontext.Value) string {
	c := &checker{version: version}
	c.object("", s, value)
	return strings.Join(slices.Compact(c.wrong), "; ")
}

func (c *checker) add(path, message string) {
	if path != "" {
		message = "at " + path + ": " + message
	}
	if !slices.Contains(c.wrong, message) {
		c.wrong = append(c.wrong, message)
	}
}

func (c *checker) object(path string, s shape, value jsontext.Value) {
	var members map[string]jsontext.Value
	if value.Kind() != '{' || json.Unmarshal(value, &members) != nil {
		c.add(path, "must be object")
		return
	}
	c.required(path, s, members)
	c.unexpected(path, s, members)
	for _, f := range s {
		if v, ok := members[f.name]; ok {
			c.field(path+"/"+f.name, &f, v)
		}
	}
}

// required reports all missing members, or the first in version 4.
func (c *checker) required(path string, s shape, members map[string]jsontext.Value) {
	for _, f := range s {
		if _, ok := members[f.name]; ok || !f.need {
			continue
		}
		c.add(path, "must have required property '"+f.name+"'")
		if c.version >= protocol.V4 {
			return
		}
	}
}

func (c *checker) unexpected(path string, s shape, members map[string]jsontext.Value) {
	where := path
	if where == "" {
		where = "root"
	}
	var names []string
	for name := range members {
		known := slices.ContainsFunc(s, func(f field) bool { return f.name == name && (!f.v4 || c.version >= protocol.V4) })
		if !known {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), 8)] {
		c.add("", fmt.Sprintf("at %s: unexpected property '%s'", where, clip(name, 64)))
	}
}

func (c *checker) field(path string, f *field, v jsontext.Value) {
	if f.null && v.Kind() == 'n' {
		return
	}
	switch f.kind {
	case text, word:
		c.text(path, f, v)
	case flag:
		c.kind(path, "boolean", v.Kind() == 't' || v.Kind() == 'f')
	case integer:
		c.integer(path, f, v)
	case object:
		c.object(path, f.in, v)
	case record:
		c.kind(path, "object", v.Kind() == '{')
	case list:
		c.kind(path, "array", v.Kind() == '[')
	case words:
		c.words(path, v)
	case anything:
	}
}

func (c *checker) kind(path, name string, ok bool) {
	if !ok {
		c.add(path, "must be "+name)
	}
}

func (c *checker) text(path string, f *field, v jsontext.Value) {
	if v.Kind() != '"' {
		c.add(path, "must be string")
		return
	}
	var s string
	_ = json.Unmarshal(v, &s) // it is a string
	switch n := int64(utf8.RuneCountInString(s)); {
	case f.kind == word && n == 0:
		c.add(path, c.not("have fewer than 1 characters"))
	case f.max > 0 && n > f.max:
		c.add(path, c.not("have more than "+strconv.FormatInt(f.max, 10)+" characters"))
	case len(f.enum) > 0 && !slices.Contains(f.enum, s):
		c.notOne(path)
	}
}

func (c *checker) not(what string) string {
	if c.version >= protocol.V4 {
		return "must not " + what
	}
	return "must NOT " + what
}

func (c *checker) notOne(path string) {
	if c.version >= protocol.V4 {
		c.add(path, "must be equal to one of the allowed values")
		return
	}
	c.add(path, "must be equal to constant")
	c.add(path, "must match a schema in anyOf")
}

func (c *checker) integer(path string, f *field, v jsontext.Value) {
	n, err := strconv.ParseFloat(string(v), 64)
	switch {
	case v.Kind() != '0' || err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53:
		c.add(path, "must be integer")
	case n < float64(f.min):
		c.add(path, "must be >= "+strconv.FormatInt(f.min, 10))
	case f.max > 0 && n > float64(f.max):
		c.add(path, "must be <= "+strconv.FormatInt(f.max, 10))
	}
}

func (c *checker) words(path string, v jsontext.Value) {
	var values []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &values) != nil {
		c.add(path, "must be array")
		return
	}
	for i, value := range values[:min(len(values), 256)] {
		c.text(path+"/"+strconv.Itoa(i), &field{kind: word}, value)
	}
}

// clip shortens text from outside before it is repeated.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "…"
}
