package rest

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/atoll-run/atoll/internal/gateway/access"
)

// route is one method and path of the interface.
type route struct {
	method, path string
	scope        access.Scope // "" needs no authentication
	summary      string
	shape
}

// shape is the handler of a route and the types of its query, body and answer.
type shape struct {
	query, body, answer, event reflect.Type // nil if there is none
	raw                        string       // media type of an answer that is no JSON of ours
	idempotent                 bool         // it accepts an Idempotency-Key
	files                      bool         // its body may have attachments
	serve                      func(*call) error
}

// none is the type of a query, body or answer that a route does not have.
type none struct{}

func typeOf[T any]() reflect.Type {
	if t := reflect.TypeFor[T](); t != reflect.TypeFor[none]() {
		return t
	}
	return nil
}

// answers is a route with one JSON answer.
func answers[Q, B, A any](do func(c *call, query *Q, body *B) (*A, error)) shape {
	s := streams[Q, B, A](func(c *call, query *Q, body *B) error {
		answer, err := do(c, query, body)
		if err != nil {
			return err
		}
		return c.answer(http.StatusOK, answer)
	})
	s.event = nil
	return s
}

// idempotent is a route that accepts an Idempotency-Key, and Prefer: respond-async.
func idempotent(s shape) shape {
	s.idempotent = true
	return s
}

// withFiles is a route whose body may hold attachments.
func withFiles(s shape) shape {
	s.files = true
	return s
}

// maxBody returns the largest body of the route.
func (r *route) maxBody(l *Limit) int64 {
	if r.files {
		return l.Message
	}
	return l.Body
}

// pattern returns the route in the form of http.ServeMux.
func (r *route) pattern() string { return r.method + " " + r.path }

// name returns the operation id in the OpenAPI document, such as runsList.
func (r *route) name() string {
	var b strings.Builder
	for i, part := range strings.FieldsFunc(strings.ToLower(r.method)+r.path, func(c rune) bool { return strings.ContainsRune("/{}.", c) }) {
		if i > 0 {
			part = strings.ToUpper(part[:1]) + part[1:]
		}
		b.WriteString(part)
	}
	return b.String()
}
