package config

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
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
	kind     kind
	goType   reflect.Type
	fields   []field  // of an object
	accepted []string // keys of an object that OpenClaw has and Atoll does not act on
	elem     *shape   // of a record or list
	choices  []*shape
	limits
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
		s.fields, s.accepted = fieldsOf(t)
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

func fieldsOf(t reflect.Type) (fields []field, accepted []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if part := f.Tag.Get("accept"); part != "" {
			accepted = append(accepted, acceptedKeys[part]...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields = append(fields, field{
			name:     name,
			doc:      f.Tag.Get("doc"),
			note:     f.Tag.Get("note"),
			required: f.Tag.Get("required") != "",
			shape:    shapeOf(f.Type, limitsOf(f.Tag)),
		})
	}
	return fields, accepted
}

func limitsOf(tag reflect.StructTag) limits {
	l := limits{check: tag.Get("check"), keyCheck: tag.Get("keys")}
	if enum := tag.Get("enum"); enum != "" {
		l.enum = strings.Split(enum, "|")
	}
	l.min, l.max, l.above = number(tag.Get("min")), number(tag.Get("max")), number(tag.Get("above"))
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
	names := make([]string, 0, len(s.fields)+len(s.accepted))
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return append(names, s.accepted...)
}
