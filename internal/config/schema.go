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
	"github.com/atoll-run/atoll/internal/config/shape"
	"github.com/atoll-run/atoll/internal/config/textcheck"
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
	w.ref(shape.Of(reflect.TypeFor[file](), shape.Limits{}), defaults)
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
func (w *schemaWriter) ref(s *shape.Shape, defaults *node) *jsonschema.Schema {
	name := defName(s.GoType)
	if _, ok := w.defs[name]; !ok {
		w.defs[name] = &jsonschema.Schema{} // a type inside itself would end here
		*w.defs[name] = *w.object(s, defaults)
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + name}
}

func (w *schemaWriter) object(s *shape.Shape, defaults *node) *jsonschema.Schema {
	out := &jsonschema.Schema{
		Type:                 "object",
		Properties:           map[string]*jsonschema.Schema{},
		AdditionalProperties: nothing(),
	}
	add := func(name string, property *jsonschema.Schema) {
		out.Properties[name] = property
		out.PropertyOrder = append(out.PropertyOrder, name)
	}
	for _, f := range s.Fields() {
		add(f.Key, w.property(f, defaults.get(f.Key)))
		if f.Required {
			out.Required = append(out.Required, f.Key)
		}
	}
	for _, key := range s.Accepted() {
		add(key, &jsonschema.Schema{Description: "OpenClaw's setting: accepted, not acted on yet."})
	}
	return out
}

// nothing is the schema that no value has.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

func (w *schemaWriter) property(f shape.Field, fallback *node) *jsonschema.Schema {
	p := w.shape(f.Shape, fallback)
	p.Description = f.Doc
	if f.Note != "" {
		p.Description += " (" + upperFirst(warning(f.Note)) + ".)"
		p.Deprecated = f.Note != noteLater
	}
	unset := fallback == nil || fallback.kind == '"' && fallback.text == ""
	if !unset && f.Kind != shape.KindObject {
		p.Default = []byte(fallback.json())
	}
	return p
}

func upperFirst(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func (w *schemaWriter) shape(s *shape.Shape, fallback *node) *jsonschema.Schema {
	switch s.Kind {
	case shape.KindObject:
		return w.ref(s, fallback)
	case shape.KindRecord:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: w.shape(s.Elem, nil), PropertyNames: keyForm(s)}
	case shape.KindList:
		return &jsonschema.Schema{Type: "array", Items: w.shape(s.Elem, nil)}
	case shape.KindText:
		return &jsonschema.Schema{Type: "string", Enum: anySlice(s.Enum), Pattern: formOf(s.Check)}
	case shape.KindNumber, shape.KindInteger:
		return &jsonschema.Schema{Type: numberType(s.Kind), Minimum: s.Min, ExclusiveMinimum: s.Above, Maximum: s.Max}
	case shape.KindBoolean:
		return &jsonschema.Schema{Type: "boolean"}
	case shape.KindChoice:
		out := &jsonschema.Schema{}
		for _, choice := range s.Choices {
			out.AnyOf = append(out.AnyOf, w.shape(choice, nil))
		}
		return out
	}
	return &jsonschema.Schema{}
}

func numberType(k shape.Kind) string {
	if k == shape.KindInteger {
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
	"envName":      textcheck.EnvNameForm,
	"prefix":       textcheck.PrefixForm,
	"model":        textcheck.ModelForm,
	"providerName": textcheck.ProviderNameForm,
	"variantID":    textcheck.VariantIDForm,
}

func formOf(check string) string {
	if form := textForms[check]; form != nil {
		return form.String()
	}
	return ""
}

// keyForm describes the keys of a record.
func keyForm(s *shape.Shape) *jsonschema.Schema {
	switch {
	case s.KeyCheck == "ulimitName":
		return &jsonschema.Schema{Enum: anySlice(textcheck.UlimitNames)}
	case formOf(s.KeyCheck) != "":
		return &jsonschema.Schema{Pattern: formOf(s.KeyCheck)}
	}
	return nil
}
