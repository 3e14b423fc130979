package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config/shape"
	"github.com/atoll-run/atoll/internal/config/textcheck"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// checker compares the tree of a file with the shape it must have. It never
// stops at the first problem.
type checker struct {
	*report
	top       *shape.Shape
	variables variables
	ignored   []string // top-level parts that belong to other programs
	later     int      // how many parts that are not acted on we are inside of
}

const noteLater = "later"

// notes are the warnings that the use of a key may give.
var notes = map[string]string{noteLater: "accepted, not acted on yet"}

const maxSafeInteger = 1 << 53 // larger ones do not survive programs that read JSON numbers as floats

// value checks n against s, whatever is wrong inside it.
func (c *checker) value(at *path, n *node, s *shape.Shape) {
	form := s.FormFor(n.kind)
	if form == nil {
		c.error(finding{at, n.offset, fmt.Sprintf("expected %s, found %s", s.Name(), found(n)), ""})
		return
	}
	switch form.Kind {
	case shape.KindAnything:
		return
	case shape.KindObject:
		c.object(at, n, form)
	case shape.KindRecord:
		c.record(at, n, form)
		return
	case shape.KindList:
		for i, item := range n.items {
			c.value(at.item(i), item, form.Elem)
		}
		return
	case shape.KindText:
		c.expand(at, n)
		c.enumerated(at, n, form)
	case shape.KindNumber, shape.KindInteger:
		c.number(at, n, form)
	}
	if check := checkNamed(form.Check); check != nil {
		if message, hint := check(n); message != "" {
			c.invalid(at, n, message, hint)
		}
	}
}

// invalid reports a value. One that came out of a variable may be a secret, so
// no message that quotes anything is given for it.
func (c *checker) invalid(at *path, n *node, message, hint string) {
	if n.expanded && strings.Contains(message+hint, `"`) {
		prefix := ""
		if strings.HasPrefix(message, textcheck.SecurityPrefix) {
			prefix = textcheck.SecurityPrefix
		}
		message, hint = prefix+"the value is not a good one once its variables are replaced", ""
	}
	c.error(finding{at, n.offset, message, hint})
}

func found(n *node) string {
	switch n.kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	}
	return n.text
}

func (c *checker) object(at *path, n *node, s *shape.Shape) {
	c.duplicates(at, n)
	for _, m := range n.members {
		c.key(at, n, s, m)
	}
	for _, f := range s.Fields() {
		if f.Required && n.get(f.Key) == nil {
			c.error(finding{at, n.offset, fmt.Sprintf("the key %q is missing", f.Key), ""})
		}
	}
	for _, check := range objectChecks[s.GoType] {
		check(c, at, n)
	}
}

// key checks one member of an object.
func (c *checker) key(at *path, n *node, s *shape.Shape, m member) {
	here := at.child(m.key)
	topLevel := at == nil
	switch f := s.Field(m.key); {
	case topLevel && m.key == secretsKey && c.variables.active: // OpenClaw's part of this name is another one
		c.ignored = append(c.ignored, m.key)
	case topLevel && m.key == versionKey && c.variables.active: // OpenClaw's files have no version of ours
		c.ignored = append(c.ignored, m.key)
		c.warn(finding{here, m.offset, "no part of this name is known: ignored", ""})
	case f != nil:
		c.field(here, m, f)
	case topLevel && slices.Contains(s.Accepted(), m.key):
		c.ignored = append(c.ignored, m.key)
	case slices.Contains(s.Accepted(), m.key):
		c.warnUnused(here, m, "OpenClaw's setting: accepted, not acted on yet")
	case topLevel && c.foreign(m.key):
		c.ignored = append(c.ignored, m.key)
		c.warn(finding{here, m.offset, "no part of this name is known: ignored", ""})
	default:
		c.unknown(at, n, s, m)
	}
}

// field checks the value of a known key.
func (c *checker) field(here *path, m member, f *shape.Field) {
	switch f.Note {
	case "":
	case noteLater:
		c.warnUnused(here, m, notes[noteLater])
		c.later++
		defer func() { c.later-- }()
	default:
		c.warn(finding{here, m.offset, warning(f.Note), ""})
	}
	c.value(here, m.value, f.Shape)
}

// warnUnused names a setting without effect, once for all that is inside it.
func (c *checker) warnUnused(here *path, m member, message string) {
	if c.later == 0 {
		c.warn(finding{here, m.offset, message, ""})
	}
}

// foreign reports whether an unknown top-level key can safely be taken
// for another program's. What looks like a part we know, or has the name of one
// of our keys at any level, cannot: a sandbox setting in the wrong place must
// not be skipped.
func (c *checker) foreign(key string) bool {
	return key != includeKey && len(c.ignored) < MaxProblems &&
		wording.Nearest(key, c.top.Keys()) == "" && c.elsewhere(key) == ""
}

// elsewhere returns where in the file a field of this name is, the settings
// common to all agents first.
func (c *checker) elsewhere(name string) string {
	defaults := c.top.Field("agents").Field("defaults")
	if defaults.Field(name) != nil {
		return globalAt.child(name).String()
	}
	if place := defaults.Locate(name); place != "" {
		return globalAt.under(place).String()
	}
	return c.top.Locate(name)
}

// includeKey is how OpenClaw's files refer to others.
const includeKey = "$include"

func (c *checker) unknown(at *path, n *node, s *shape.Shape, m member) {
	if c.full() {
		return
	}
	message, hint := "unknown key", ""
	near := wording.Nearest(m.key, s.Keys())
	inside, elsewhere := s.Locate(m.key), c.elsewhere(m.key)
	if at == nil {
		inside = "" // everything is inside the file
	}
	switch {
	case m.key == includeKey:
		message, hint = "other files cannot be included", "write the content of the file here"
	case strings.EqualFold(near, m.key) && n.get(near) != nil:
		message = fmt.Sprintf("unknown key: keys are case-sensitive and %q is set on line %d", near, c.lineOf(n, near))
		hint = "remove one of the two"
	case inside != "":
		message, hint = fmt.Sprintf("unknown key here, did you mean %s?", at.under(inside)), "move it there"
	case near != "":
		message, hint = fmt.Sprintf("unknown key, did you mean %q?", near), "write "+near
	case elsewhere != "":
		message, hint = fmt.Sprintf("unknown key here, did you mean %s?", elsewhere), "move it there"
	default:
		hint = "known keys here: " + strings.Join(s.FieldNames(), ", ")
	}
	c.error(finding{at.child(m.key), m.offset, message, hint})
}

// duplicates reports every key that an object has more than once.
func (c *checker) duplicates(at *path, n *node) {
	first := make(map[string]int, len(n.members))
	for _, m := range n.members {
		if offset, seen := first[m.key]; seen {
			if c.full() {
				continue
			}
			message := fmt.Sprintf("duplicate key, first on line %d", c.doc.Position(offset).Line)
			c.error(finding{at.child(m.key), m.offset, message, "remove one of the two"})
			continue
		}
		first[m.key] = m.offset
	}
}

func (c *checker) lineOf(n *node, key string) int {
	_, offset, _ := (*path)(nil).child(key).find(n)
	return c.doc.Position(offset).Line
}

func (c *checker) record(at *path, n *node, s *shape.Shape) {
	c.duplicates(at, n)
	for _, m := range n.members {
		here := at.child(m.key)
		if check := checkNamed(s.KeyCheck); check != nil {
			key := &node{kind: '"', text: m.key}
			if message, hint := check(key); message != "" {
				c.error(finding{here, m.offset, message, hint})
			}
		}
		c.value(here, m.value, s.Elem)
	}
}

func (c *checker) enumerated(at *path, n *node, s *shape.Shape) {
	if len(s.Enum) == 0 || slices.Contains(s.Enum, n.text) {
		return
	}
	message := fmt.Sprintf("expected %s, found %s", wording.OneOf(s.Enum), wording.Quote(n.text))
	hint := ""
	if near := wording.Nearest(n.text, s.Enum); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	c.invalid(at, n, message, hint)
}

// number checks a number and, where it must be whole, writes it in plain digits.
func (c *checker) number(at *path, n *node, s *shape.Shape) {
	fail := func(format string, args ...any) {
		c.error(finding{at, n.offset, fmt.Sprintf(format, args...), ""})
	}
	v, err := strconv.ParseFloat(n.text, 64)
	switch {
	case err != nil || math.IsInf(v, 0):
		fail("the number is too large")
	case s.Min != nil && v < *s.Min:
		fail("must be at least %v, found %s", *s.Min, n.text)
	case s.Above != nil && v <= *s.Above:
		fail("must be more than %v, found %s", *s.Above, n.text)
	case s.Max != nil && v > *s.Max:
		fail("must be at most %s, found %s", strconv.FormatFloat(*s.Max, 'f', -1, 64), n.text)
	case s.Kind == shape.KindInteger && (v != math.Trunc(v) || math.Abs(v) > maxSafeInteger):
		fail("expected a whole number, found %s", n.text)
	case v == math.Trunc(v) && math.Abs(v) <= maxSafeInteger:
		n.text = strconv.FormatInt(int64(v), 10)
	}
}

// checkFile checks a whole file. Its top must be an object for anything else
// to make sense.
func (c *checker) checkFile(root *node) {
	c.top = shape.Of(reflect.TypeFor[file](), shape.Limits{})
	if !c.newerVersion(root) {
		c.value(nil, root, c.top)
	}
}
