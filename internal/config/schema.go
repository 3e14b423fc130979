package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/atoll-run/atoll/internal/config/json5"
	"github.com/atoll-run/atoll/internal/config/openclawkeys"
)

// Schema returns the JSON Schema of the file, for editors. It is made from the
// same shapes that a file is checked against; what a schema cannot say (keys
// that depend on each other, most forms of text) is left to the check.
func Schema() ([]byte, error) {
	defaults, err := defaultsTree()
	if err != nil {
		return nil, err
	}
	w := &schemaWriter{defs: map[string]*jsonschema.Schema{}}
	w.ref(shapeOf(reflect.TypeFor[file](), limits{}), defaults)
	top := w.defs[defName(reflect.TypeFor[file]())]
	delete(w.defs, defName(reflect.TypeFor[file]()))
	top.Schema = "https://json-schema.org/draft/2020-12/schema"
	top.Title = "Configuration of Atoll"
	top.AdditionalProperties = nil // other programs have parts of their own
	for _, part := range openclawkeys.Accepted["top"] {
		top.Properties[part].Description = "Another program's part: ignored."
	}
	top.Defs = w.defs
	return json.Marshal(top, jsontext.WithIndent("  "), json.Deterministic(true))
}

// defaultsTree is the built-in defaults in the form of a file.
func defaultsTree() (*node, error) {
	empty := Default(Environment{})
	llm, relay := builtinLLM(), builtinRelay()
	text, err := json.Marshal(map[string]any{
		"agents": map[string]any{"defaults": map[string]any{
			"sandbox": builtin(), "skipBootstrap": false, "llm": map[string]any{"bodyPolicy": "strict"},
		}},
		"llm":     map[string]any{"unpriced": llm.Unpriced, "timeouts": llm.Timeouts, "limits": llm.Limits, "billing": llm.Billing},
		"relay":   map[string]any{"base": relay.Base, "history": relay.History, "draft": relay.Draft, "author": relay.Author, "limits": relay.Limits},
		"tools":   map[string]any{"host": false},
		"session": empty.Session(),
		"gateway": builtinGateway(),
	})
	if err != nil {
		return nil, err
	}
	doc, err := json5.Parse(text)
	if err != nil {
		return nil, err
	}
	return parseTree(doc)
}

type schemaWriter struct {
	defs map[string]*jsonschema.Schema
}

func defName(t reflect.Type) string {
	name := strings.TrimSuffix(t.Name(), "File")
	return strings.ToLower(name[:1]) + name[1:]
}

// ref describes an object type once and refers to it afterwards.
func (w *schemaWriter) ref(s *shape, defaults *node) *jsonschema.Schema {
	name := defName(s.goType)
	if _, ok := w.defs[name]; !ok {
		w.defs[name] = &jsonschema.Schema{} // a type inside itself would end here
		*w.defs[name] = *w.object(s, defaults)
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

func (w *schemaWriter) object(s *shape, defaults *node) *jsonschema.Schema {
	out := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: nothing(),
	}
	add := func(name string, property *jsonschema.Schema) {
		out.Properties[name] = property
		out.PropertyOrder = append(out.PropertyOrder, name)
	}
	for _, f := range s.fields() {
		add(f.name, w.property(f, defaults.get(f.name)))
		if f.required {
			out.Required = append(out.Required, f.name)
		}
	}
	for _, key := range s.accepted() {
		add(key, &jsonschema.Schema{Description: "OpenClaw's setting: accepted, not acted on yet."})
	}
	return out
}

// nothing is the schema that no value has.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func (w *schemaWriter) property(f field, fallback *node) *jsonschema.Schema {
	p := w.shape(f.shape, fallback)
	p.Description = f.doc
	if f.note != "" {
		p.Description += " (" + upperFirst(warning(f.note)) + ".)"
		p.Deprecated = f.note != noteLater
	}
	unset := fallback == nil || fallback.kind == '"' && fallback.text == ""
	if !unset && f.kind != kindObject {
		p.Default = []byte(fallback.json())
	}
	return p
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func (w *schemaWriter) shape(s *shape, fallback *node) *jsonschema.Schema {
	switch s.kind {
	case kindObject:
		return w.ref(s, fallback)
	case kindRecord:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: w.shape(s.elem, nil), PropertyNames: keyForm(s)}
	case kindList:
		return &jsonschema.Schema{Type: "array", Items: w.shape(s.elem, nil)}
	case kindText:
		return &jsonschema.Schema{Type: "string", Enum: anySlice(s.enum), Pattern: formOf(s.check)}
	case kindNumber, kindInteger:
		return &jsonschema.Schema{Type: numberType(s.kind), Minimum: s.min, ExclusiveMinimum: s.above, Maximum: s.max}
	case kindBoolean:
		return &jsonschema.Schema{Type: "boolean"}
	case kindChoice:
		out := &jsonschema.Schema{}
		for _, choice := range s.choices {
			out.AnyOf = append(out.AnyOf, w.shape(choice, nil))
		}
		return out
	}
	return &jsonschema.Schema{}
}

func numberType(k kind) string {
	if k == kindInteger {
		return "integer"
	}
	return "number"
}

func anySlice(texts []string) []any {
	var out []any
	for _, text := range texts {
		out = append(out, text)
	}
	return out
}

// textForms are the checks that are one pattern.
var textForms = map[string]fmt.Stringer{
	"agentID":      agentIDForm,
	"envName":      envNameForm,
	"prefix":       prefixForm,
	"model":        modelForm,
	"providerName": providerNameForm,
	"variantID":    variantIDForm,
}

func formOf(check string) string {
	if form := textForms[check]; form != nil {
		return form.String()
	}
	return ""
}

// keyForm describes the keys of a record.
func keyForm(s *shape) *jsonschema.Schema {
	switch {
	case s.keyCheck == "ulimitName":
		return &jsonschema.Schema{Enum: anySlice(ulimitNames)}
	case formOf(s.keyCheck) != "":
		return &jsonschema.Schema{Pattern: formOf(s.keyCheck)}
	}
	return nil
}
