package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/openclawkeys"
)

// kind is what a place in the file may hold.
type kind int

const (
	kindAnything kind = iota
	kindObject        // with the keys that fields name
	kindRecord        // with any key, every value of shape elem
	kindList
	kindText
	kindNumber
	kindInteger
	kindBoolean
	kindChoice // any of choices
)

// shape describes one place of the file. It is made from the Go types that the
// file is decoded into and is all that the strict check and the JSON Schema
// know, so the three cannot disagree.
type shape struct {
	kind    kind
	goType  reflect.Type
	elem    *shape // of a record or list
	choices []*shape
	limits

	// Of an object, filled in when it is first looked at: most files use few
	// of the objects that there are.
	described bool
	known     []field
	foreign   []string
}

// limits narrow the values of a place. They come from the tags of its field.
type limits struct {
	enum     []string
	min, max *float64
	above    *float64 // exclusive minimum
	check    string   // name of a check in valueChecks, for every value
	keyCheck string   // the same, for every key of a record
}

// field is one key of an object.
type field struct {
	name     string
	doc      string
	note     string // a key of notes: why a warning is given
	required bool
	*shape
}

// chooser is implemented by types that the file may write in several forms.
// The result has one value of each form's Go type.
type chooser interface{ forms() []any }

var (
	chooserType = reflect.TypeFor[chooser]()
	valueType   = reflect.TypeFor[jsontext.Value]()
)

// shapeOf derives the shape of t.
func shapeOf(t reflect.Type, tag limits) *shape {
	s := &shape{goType: t, limits: tag}
	switch {
	case t.Kind() == reflect.Pointer:
		return shapeOf(t.Elem(), tag)
	case t == valueType:
		s.kind = kindAnything
	case t.Implements(chooserType):
		s.kind = kindChoice
		for _, form := range reflect.Zero(t).Interface().(chooser).forms() {
			s.choices = append(s.choices, shapeOf(reflect.TypeOf(form), tag))
		}
	default:
		s.describe(t, tag)
	}
	return s
}

func (s *shape) describe(t reflect.Type, tag limits) {
	switch t.Kind() {
	case reflect.Struct:
		s.kind = kindObject
	case reflect.Map:
		s.kind, s.elem = kindRecord, shapeOf(t.Elem(), tag)
	case reflect.Slice:
		s.kind, s.elem = kindList, shapeOf(t.Elem(), tag)
	case reflect.String:
		s.kind = kindText
	case reflect.Bool:
		s.kind = kindBoolean
	case reflect.Float64:
		s.kind = kindNumber
	case reflect.Int, reflect.Int64:
		s.kind = kindInteger
	default:
		panic("config: no shape for " + t.String())
	}
}

// fields are the keys of an object that Atoll has.
func (s *shape) fields() []field {
	s.look()
	return s.known
}

// accepted are the keys of an object that OpenClaw has and Atoll does not act on.
func (s *shape) accepted() []string {
	s.look()
	return s.foreign
}

func (s *shape) look() {
	if s.described || s.kind != kindObject {
		return
	}
	s.described = true
	for member := range s.goType.Fields() {
		tag := parseTag(member.Tag)
		if part := tag["accept"]; part != "" {
			s.foreign = append(s.foreign, openclawkeys.Accepted[part]...)
			continue
		}
		name, _, _ := strings.Cut(tag["json"], ",")
		if name == "" || name == "-" {
			continue
		}
		s.known = append(s.known, field{
			name:     name,
			doc:      tag["doc"],
			note:     tag["note"],
			required: tag["required"] != "",
			shape:    shapeOf(member.Type, limitsOf(tag)),
		})
	}
}

// parseTag reads all of a tag in one pass; asking the tag for one key after the
// other would read its documentation again each time.
func parseTag(tag reflect.StructTag) map[string]string {
	values := map[string]string{}
	for rest := string(tag); rest != ""; {
		key, quoted, ok := strings.Cut(strings.TrimLeft(rest, " "), ":")
		if !ok {
			break
		}
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			panic("config: bad tag: " + string(tag))
		}
		values[key], _ = strconv.Unquote(text)
		rest = quoted[len(text):]
	}
	return values
}

func limitsOf(tag map[string]string) limits {
	l := limits{check: tag["check"], keyCheck: tag["keys"]}
	if enum := tag["enum"]; enum != "" {
		l.enum = strings.Split(enum, "|")
	}
	l.min, l.max, l.above = number(tag["min"]), number(tag["max"]), number(tag["above"])
	return l
}

func number(text string) *float64 {
	if text == "" {
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic("config: bad number in a tag: " + text)
	}
	return &v
}

// keys are the names that an object may have.
func (s *shape) keys() []string {
	return append(s.fieldNames(), s.accepted()...)
}

// fieldNames are those of them that Atoll acts on.
func (s *shape) fieldNames() []string {
	names := make([]string, len(s.fields()))
	for i, f := range s.fields() {
		names[i] = f.name
	}
	return names
}

// field returns the field of an object with this name, or nil.
func (s *shape) field(name string) *field {
	i := slices.IndexFunc(s.fields(), func(f field) bool { return f.name == name })
	if i < 0 {
		return nil
	}
	return &s.known[i]
}

// locate returns the nearest place below s, through objects only, that has a
// field of this name: docker.image for image, seen from a sandbox.
func (s *shape) locate(name string) string {
	type place struct {
		*shape
		prefix string
	}
	for queue := []place{{s, ""}}; len(queue) > 0; queue = queue[1:] {
		here := queue[0]
		if here.prefix != "" && here.field(name) != nil {
			return here.prefix + name
		}
		for _, f := range here.fields() {
			queue = append(queue, place{f.shape, here.prefix + f.name + "."})
		}
	}
	return ""
}
