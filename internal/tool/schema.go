package tool

import (
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// schemaOf describes the arguments of a tool. It is made from the struct that
// they are decoded into, so the two cannot disagree.
func schemaOf[A any]() jsontext.Value {
	schema, err := jsonschema.For[A](&jsonschema.ForOptions{TypeSchemas: enums()})
	if err != nil {
		panic(err) // the types are ours
	}
	withoutNull(schema)
	text, err := json.Marshal(schema, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return text
}

// enums are the types of arguments that have few values.
func enums() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[processAction](): enumOf(processActions()),
		reflect.TypeFor[stream]():        enumOf(streams()),
		reflect.TypeFor[BrowserAction](): enumOf(BrowserActions()),
	}
}

func enumOf[T any](values []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	return s
}

// withoutNull describes lists as lists. That null is taken for an empty one
// need not be told.
func withoutNull(s *jsonschema.Schema) {
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		withoutNull(p)
	}
	if s.Items != nil {
		withoutNull(s.Items)
	}
}
