package rest

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/membudget"
)

// streams is a route that writes its answer itself; A is its type where it does not
// stream.
func streams[Q, B, A any](do func(c *call, query *Q, body *B) error) shape {
	s := shape{query: typeOf[Q](), body: typeOf[B](), answer: typeOf[A](), events: runEvents}
	s.serve = func(c *call) error {
		query, body := new(Q), new(B)
		if s.query != nil {
			if err := decodeQuery(c.r.URL.RawQuery, query); err != nil {
				return err
			}
		}
		if s.body != nil {
			if err := c.decodeBody(body); err != nil {
				return err
			}
		}
		return do(c, query, body)
	}
	return s
}

// holder returns whose share of memory a body counts against: the caller's token, or the
// address of a caller without one.
func (c *call) holder() string {
	if c.caller != nil {
		return c.caller.Token
	}
	return access.Remote(c.r).String()
}

// decodeBody reads a JSON body into v. Unknown members are refused.
func (c *call) decodeBody(v any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return &api.Problem{Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type", Detail: "the body must be JSON", Hint: "send Content-Type: application/json"}
	}
	share := membudget.Share{Budget: c.Inbound, Holder: c.holder(), MinBuffer: firstChunk, MaxBuffer: c.route.maxBody(&c.Limit) + 1}
	defer share.Free()
	data, err := c.readBody(&share)
	if err == nil {
		err = decodeJSON(data, v)
	}
	if err != nil {
		c.w.Header().Set("Connection", "close") // the rest of the body is not read
		return err
	}
	return nil
}

// firstChunk is the memory reserved for a body before its size is known.
const firstChunk = 64 << 10

// readBody reads a body within the memory budget of the caller's token.
func (c *call) readBody(share *membudget.Share) ([]byte, error) {
	data, err := membudget.ReadAll(http.MaxBytesReader(c.w, c.r.Body, c.route.maxBody(&c.Limit)), share)
	over, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case err == nil:
		return data, nil
	case tooLarge:
		return nil, &api.Problem{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large", Detail: fmt.Sprintf("the body has more than %d bytes", over.Limit)}
	case errors.Is(err, membudget.ErrTotal), errors.Is(err, membudget.ErrHolder):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &api.Problem{Status: http.StatusRequestTimeout, Code: "body_too_slow", Detail: "the body arrives too slowly"}
	}
	return nil, &api.Problem{Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body could not be read"}
}

func decodeJSON(data []byte, v any) error {
	err := json.Unmarshal(data, v, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		return invalid(api.FieldError{Pointer: pointer(wrong.JSONPointer), Detail: describe(wrong)})
	}
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return &api.Problem{Status: http.StatusBadRequest, Code: "invalid_json", Detail: fmt.Sprintf("the body is no JSON document: at byte %d", bad.ByteOffset),
			Errors: []api.FieldError{{Pointer: pointer(bad.JSONPointer), Detail: "cannot be read"}}}
	}
	return &api.Problem{Status: http.StatusBadRequest, Code: "invalid_body", Detail: "the body could not be read"}
}

// describe returns what is wrong with a member, without its value.
func describe(e *json.SemanticError) string {
	switch {
	case errors.Is(e, json.ErrUnknownName):
		return "unknown field"
	case e.GoType == nil:
		return "cannot be used here"
	}
	return "must be " + kindName(e.GoType)
}

func kindName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[[]byte]() {
		return "a string in base64"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number in range"
}

// maxPointer bounds how much of a caller's own text is repeated in an error.
const maxPointer = 200

func pointer(p jsontext.Pointer) string {
	text := string(p)
	for len(text) > maxPointer || !utf8.ValidString(text) {
		text = text[:min(len(text)-1, maxPointer)]
	}
	if text == "" {
		return "/"
	}
	return text
}

// decodeQuery fills a query struct. Unknown parameters are refused.
func decodeQuery(raw string, v any) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return &api.Problem{Status: http.StatusBadRequest, Code: "invalid_query", Detail: "the query cannot be read"}
	}
	var errs []api.FieldError
	to := reflect.ValueOf(v).Elem()
	for name, given := range values {
		detail := "unknown parameter"
		for i := range to.NumField() {
			if field := to.Type().Field(i); field.Tag.Get("query") == name {
				detail = setField(to.Field(i), field.Tag, given)
			}
		}
		if detail != "" {
			errs = append(errs, api.FieldError{Pointer: pointer(jsontext.Pointer(name)), Detail: detail})
		}
	}
	if len(errs) > 0 {
		return invalid(errs...)
	}
	return nil
}

// setField sets a field from its parameters and returns what is wrong, or "".
func setField(field reflect.Value, tag reflect.StructTag, given []string) string {
	if field.Kind() == reflect.Slice {
		return setList(field, given)
	}
	if len(given) != 1 {
		return "is given more than once"
	}
	if values := tag.Get("enum"); values != "" && !slices.Contains(strings.Split(values, "|"), given[0]) {
		return "must be one of " + strings.ReplaceAll(values, "|", ", ")
	}
	switch field.Kind() {
	case reflect.String:
		if !utf8.ValidString(given[0]) || len(given[0]) > 1000 {
			return "must be text of at most 1000 bytes"
		}
		field.SetString(given[0])
	case reflect.Bool:
		is, err := strconv.ParseBool(given[0])
		if err != nil {
			return "must be true or false"
		}
		field.SetBool(is)
	default:
		return setNumber(field, tag, given[0])
	}
	return ""
}

// maxRepeated is how often a parameter may be given that is a list.
const maxRepeated = 64

func setList(field reflect.Value, given []string) string {
	for _, text := range given {
		if !utf8.ValidString(text) || len(text) > 2000 || len(given) > maxRepeated {
			return "must be texts of at most 2000 bytes, at most 64"
		}
	}
	field.Set(reflect.ValueOf(given))
	return ""
}

func setNumber(field reflect.Value, tag reflect.StructTag, text string) string {
	n, err := strconv.ParseInt(text, 10, field.Type().Bits())
	if err != nil {
		return "must be a whole number"
	}
	if least, err := strconv.ParseInt(tag.Get("min"), 10, 64); err == nil && n < least {
		return "must be at least " + tag.Get("min")
	}
	if most, err := strconv.ParseInt(tag.Get("max"), 10, 64); err == nil && n > most {
		return "must be at most " + tag.Get("max")
	}
	field.SetInt(n)
	return ""
}
