// Package shape describes what places of the configuration file may hold, from
// the Go types that the file is decoded into and their tags.
package shape

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/openclawkeys"
)

// Kind is what a place in the file may hold.
type Kind int

// The kinds.
const (
	KindAnything Kind = iota
	KindObject        // with the keys that fields name
	KindRecord        // with any key, every value of shape elem
	KindList
	KindText
	KindNumber
	KindInteger
	KindBoolean
	KindChoice // any of choices
)

// Shape describes one place of the file. It is made from the Go types that the
// file is decoded into and is all that the strict check and the JSON Schema
// know, so the three cannot disagree.
type Shape struct {
	Kind    Kind
	GoType  reflect.Type
	Elem    *Shape // of a record or list
	Choices []*Shape
	Limits

	// Of an object, filled in when it is first looked at: most files use few
	// of the objects that there are.
	described bool
	known     []Field
	foreign   []string
}

// Limits narrow the values of a place. They come from the tags of its field.
type Limits struct {
	Enum     []string
	Min, Max *float64
	Above    *float64 // exclusive minimum
	Check    string   // name of a check, for checkNamed, for every value
	KeyCheck string   // the same, for every key of a record
}

// Field is one key of an object.
type Field struct {
	Key      string
	Doc      string
	Note     string // a key of notes: why a warning is given
	Required bool
	*Shape
}

// Chooser is implemented by types that the file may write in several forms.
// The result has one value of each form's Go type.
type Chooser interface{ Forms() []any }

var (
	chooserType = reflect.TypeFor[Chooser]()
	valueType   = reflect.TypeFor[jsontext.Value]()
)

// Of derives the shape of t.
func Of(t reflect.Type, tag Limits) *Shape {
	s := &Shape{GoType: t, Limits: tag}
	switch {
	case t.Kind() == reflect.Pointer:
		return Of(t.Elem(), tag)
	case t == valueType:
		s.Kind = KindAnything
	case t.Implements(chooserType):
		s.Kind = KindChoice
		for _, form := range reflect.Zero(t).Interface().(Chooser).Forms() {
			s.Choices = append(s.Choices, Of(reflect.TypeOf(form), tag))
		}
	default:
		s.describe(t, tag)
	}
	return s
}

func (s *Shape) describe(t reflect.Type, tag Limits) {
	switch t.Kind() {
	case reflect.Struct:
		s.Kind = KindObject
	case reflect.Map:
		s.Kind, s.Elem = KindRecord, Of(t.Elem(), tag)
	case reflect.Slice:
		s.Kind, s.Elem = KindList, Of(t.Elem(), tag)
	case reflect.String:
		s.Kind = KindText
	case reflect.Bool:
		s.Kind = KindBoolean
	case reflect.Float64:
		s.Kind = KindNumber
	case reflect.Int, reflect.Int64:
		s.Kind = KindInteger
	default:
		panic("config: no shape for " + t.String())
	}
}

// Fields are the keys of an object that Atoll has.
func (s *Shape) Fields() []Field {
	s.look()
	return s.known
}

// Accepted are the keys of an object that OpenClaw has and Atoll does not act on.
func (s *Shape) Accepted() []string {
	s.look()
	return s.foreign
}

func (s *Shape) look() {
	if s.described || s.Kind != KindObject {
		return
	}
	s.described = true
	s.lookAt(s.GoType)
}

// lookAt adds the keys of a type, those of the types that it embeds too.
func (s *Shape) lookAt(t reflect.Type) {
	for member := range t.Fields() {
		tag := parseTag(member.Tag)
		if member.Anonymous && len(tag) == 0 {
			s.lookAt(member.Type)
			continue
		}
		if part := tag["accept"]; part != "" {
			s.foreign = append(s.foreign, openclawkeys.Accepted[part]...)
			continue
		}
		name, _, _ := strings.Cut(tag["json"], ",")
		if name == "" || name == "-" {
			continue
		}
		s.known = append(s.known, Field{
			Key:      name,
			Doc:      tag["doc"],
			Note:     tag["note"],
			Required: tag["required"] != "",
			Shape:    Of(member.Type, limitsOf(tag)),
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

func limitsOf(tag map[string]string) Limits {
	l := Limits{Check: tag["check"], KeyCheck: tag["keys"]}
	if enum := tag["enum"]; enum != "" {
		l.Enum = strings.Split(enum, "|")
	}
	l.Min, l.Max, l.Above = number(tag["min"]), number(tag["max"]), number(tag["above"])
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

// Keys are the names that an object may have.
func (s *Shape) Keys() []string {
	return append(s.FieldNames(), s.Accepted()...)
}

// FieldNames are those of them that Atoll acts on.
func (s *Shape) FieldNames() []string {
	names := make([]string, len(s.Fields()))
	for i, f := range s.Fields() {
		names[i] = f.Key
	}
	return names
}

// Field returns the field of an object with this name, or nil.
func (s *Shape) Field(name string) *Field {
	i := slices.IndexFunc(s.Fields(), func(f Field) bool { return f.Key == name })
	if i < 0 {
		return nil
	}
	return &s.known[i]
}

// Locate returns the nearest place below s, through objects only, that has a
// field of this name: docker.image for image, seen from a sandbox.
func (s *Shape) Locate(name string) string {
	type place struct {
		*Shape
		prefix string
	}
	for queue := []place{{s, ""}}; len(queue) > 0; queue = queue[1:] {
		here := queue[0]
		if here.prefix != "" && here.Field(name) != nil {
			return here.prefix + name
		}
		for _, f := range here.Fields() {
			queue = append(queue, place{f.Shape, here.prefix + f.Key + "."})
		}
	}
	return ""
}
