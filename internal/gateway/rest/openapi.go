package rest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/api"
)

// object is a JSON object of the document.
type object = map[string]any

// OpenAPI returns the OpenAPI 3.1 document, made from the route table and the types
// of package api.
func (s *Server) OpenAPI() ([]byte, error) {
	schemas := schemaSet{}
	paths := map[string]object{}
	for _, r := range slices.Concat(s.table, elsewhere) {
		if paths[r.path] == nil {
			paths[r.path] = object{}
		}
		paths[r.path][strings.ToLower(r.method)] = r.describe(schemas)
	}
	return json.Marshal(object{
		"openapi": "3.1.0",
		"info":    object{"title": "Atoll", "version": "1", "description": "AI agents in hardened sandboxes: tasks, what becomes of them, and what they cost."},
		"paths":   paths,
		"components": object{
			"schemas":         schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "A token of `atoll token create`."}},
		},
	}, json.Deterministic(true), jsontext.WithIndent("  "))
}

func (r *route) describe(schemas schemaSet) object {
	o := object{"operationId": r.operation, "summary": r.summary, "responses": r.responses(schemas)}
	if parameters := r.parameters(schemas); len(parameters) > 0 {
		o["parameters"] = parameters
	}
	if r.body != nil {
		o["requestBody"] = object{"required": true, "content": content("application/json", schemas.of(r.body))}
	}
	if r.rawBody != "" {
		o["requestBody"] = object{"required": true, "content": object{r.rawBody: object{}}}
	}
	if r.scope != "" {
		o["security"] = []any{object{"token": []any{}}}
		o["x-scope"] = string(r.scope)
	}
	return o
}

func content(media string, schema object) object {
	return object{media: object{"schema": schema}}
}

func (r *route) responses(schemas schemaSet) object {
	good := object{"description": "What was asked for."}
	media := object{}
	switch {
	case r.raw != "":
		media[r.raw] = object{}
	case r.answer != nil:
		media = content("application/json", schemas.of(r.answer))
	}
	if r.events != nil {
		media["text/event-stream"] = object{"schema": object{"type": "string", "description": r.events.description}}
		for _, t := range r.events.data {
			schemas.of(t)
		}
	}
	for _, t := range r.messages {
		schemas.of(t)
	}
	good["content"] = media
	all := object{"200": good, "default": object{"description": "A problem.", "content": content(api.ProblemType, schemas.of(reflect.TypeFor[api.Problem]()))}}
	if r.idempotent {
		all["202"] = object{"description": "It was accepted, as Prefer: respond-async asks for; Location says where to look.", "content": content("application/json", schemas.of(r.answer))}
	}
	return all
}

// headers are the header parameters of a route.
func (r *route) headers() map[string]string {
	switch {
	case r.idempotent:
		return map[string]string{IdempotencyKey: "The same key again is the same task.", "Prefer": "respond-async does not wait."}
	case r.events != nil && r.events.resumable:
		return map[string]string{"Last-Event-ID": "Only events after this number."}
	}
	return nil
}

func (r *route) parameters(schemas schemaSet) (list []any) {
	for part := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			list = append(list, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	headers := r.headers()
	for _, name := range []string{IdempotencyKey, "Last-Event-ID", "Prefer"} {
		if headers[name] != "" {
			list = append(list, object{"name": name, "in": "header", "description": headers[name], "schema": object{"type": "string"}})
		}
	}
	if r.query == nil {
		return list
	}
	for field := range r.query.Fields() {
		list = append(list, object{"name": field.Tag.Get("query"), "in": "query", "description": field.Tag.Get("doc"), "schema": schemas.field(field)})
	}
	return list
}

// field returns the schema of a struct field, with the contents of its tags.
func (b schemaSet) field(f reflect.StructField) object {
	s := b.of(f.Type)
	if text := f.Tag.Get("doc"); text != "" && f.Tag.Get("query") == "" {
		s["description"] = text
	}
	for tag, word := range map[string]string{"min": "minimum", "max": "maximum"} {
		if n, err := strconv.Atoi(f.Tag.Get(tag)); err == nil {
			s[word] = n
		}
	}
	if values := f.Tag.Get("enum"); values != "" {
		s["enum"] = strings.Split(values, "|")
	}
	return s
}

func (s *Server) openapi(c *call) error {
	text, err := s.OpenAPI()
	if err != nil {
		return fmt.Errorf("the OpenAPI document: %w", err)
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, err = c.w.Write(text)
	return err
}
