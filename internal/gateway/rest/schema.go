package rest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// schemaSet holds the schemas of named types.
type schemaSet object

// of returns the schema of a type, or a reference for a struct.
func (b schemaSet) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case t == reflect.TypeFor[json.RawMessage]():
		return object{"description": "Any JSON value."}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return object{"anyOf": []any{b.of(t.Elem()), object{"type": "null"}}}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice:
		return object{"type": "array", "items": b.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": b.of(t.Elem())}
	case reflect.Struct:
		return b.named(t)
	}
	panic(fmt.Sprintf("%s has no place in a document", t))
}

func (b schemaSet) named(t reflect.Type) object {
	if b[t.Name()] == nil {
		s := object{"type": "object"}
		b[t.Name()] = s // before its fields, which may be of its own type
		properties, required := object{}, []string{}
		for field := range t.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			properties[name] = b.field(field)
			if !strings.Contains(options, "omit") {
				required = append(required, name)
			}
		}
		s["properties"] = properties
		if len(required) > 0 {
			s["required"] = required
		}
	}
	return object{"$ref": "#/components/schemas/" + t.Name()}
}
