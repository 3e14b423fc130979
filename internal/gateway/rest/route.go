package rest

import (
	"net/http"
	"reflect"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
)

// route is one method and path of the interface.
type route struct {
	method, path string
	operation    string       // its name in the OpenAPI document and in generated clients
	scope        access.Scope // "" needs no authentication
	summary      string
	shape
}

// shape is the handler of a route and the types of its query, body and answer.
type shape struct {
	query, body, answer reflect.Type   // nil if there is none
	events              *eventStream   // that it answers where they are asked for; nil if there are none
	messages            []reflect.Type // of a WebSocket
	raw, rawBody        string         // media type of an answer or a body that is no JSON of ours
	idempotent          bool           // it accepts an Idempotency-Key
	files               bool           // its body may have attachments
	serve               func(*call) error
}

// eventStream describes the server-sent events of a route.
type eventStream struct {
	description string
	data        []reflect.Type
	resumable   bool // it begins after a Last-Event-ID
}

// runEvents are the events of a run or a task.
var runEvents = &eventStream{
	description: "Events; the data of each is an Event. The first and the last have no number: run and receipt of a run are a Run, task and answer of a session's task a Task.",
	data:        []reflect.Type{reflect.TypeFor[api.Event]()}, resumable: true,
}

// follows is a route that answers with an A, or with events of its own.
func follows[Q, B, A any](do func(c *call, query *Q, body *B) error, events *eventStream) shape {
	s := streams[Q, B, A](do)
	s.events = events
	return s
}

// sendsBytes is a route that answers with bytes.
func sendsBytes[Q any](do func(c *call, query *Q, _ *none) error) shape {
	s := follows[Q, none, none](do, nil)
	s.raw = "application/octet-stream"
	return s
}

// takesBytes is a route whose body is bytes, which it reads itself.
func takesBytes[Q, A any](do func(c *call, query *Q, _ *none) (*A, error)) shape {
	s := answers(do)
	s.rawBody = "application/octet-stream"
	return s
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
	s.events = nil
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

// maxOpenBody bounds the body of a route without authentication.
const maxOpenBody = 4 << 10

// maxBody returns the largest body of the route.
func (r *route) maxBody(l *Limit) int64 {
	switch {
	case r.scope == "":
		return min(l.Body, maxOpenBody)
	case r.files:
		return l.Message
	}
	return l.Body
}

// pattern returns the route in the form of http.ServeMux.
func (r *route) pattern() string { return r.method + " " + r.path }
