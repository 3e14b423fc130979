package ws

import (
	"context"
	"errors"
	"fmt"
	"slices"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/audit/traceparent"
	"github.com/atoll-run/atoll/internal/gateway/protocol"
)

// method is a method of the protocol.
type method struct {
	name   string
	scopes [2]string // of version 3 and 4; "" needs none
	v4     bool      // version 4 only
	params shape
	waits  bool // runs in the background: the connection serves other requests meanwhile
	do     func(*call) (any, error)
}

// call is one request.
type call struct {
	*conn
	id     string
	method *method
	params jsontext.Value
	ctx    context.Context
	trace  string // traceparent of the request; "" if it has none
}

// noReply is returned by a method that has replied itself.
type noReply struct{}

func (m *method) scope(version int) string {
	if version >= protocol.V4 {
		return m.scopes[1]
	}
	return m.scopes[0]
}

func both(scope string) [2]string { return [2]string{scope, scope} }

// names returns the methods of a version.
func (s *Server) names(version int) (names []string) {
	for name, m := range s.methods {
		if !m.v4 || version >= protocol.V4 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// frameShape is the shape of a request.
func frameShape() shape {
	return shape{
		{name: "type", kind: text, need: true, enum: []string{protocol.TypeRequest}}, {name: "id", kind: word, need: true, max: maxWord},
		{name: "method", kind: word, need: true, max: maxWord}, {name: "params", kind: anything},
		{name: "traceparent", kind: text, max: 128, v4: true}, {name: "expectedProfileId", kind: word, max: maxWord, v4: true},
	}
}

// parse decodes a request, or returns what is wrong with it. Duplicate keys, also
// in another case, are refused: the check and the decoder might read different
// ones.
func parse(version int, data []byte) (req protocol.Request, wrong string) {
	value := jsontext.Value(data)
	if !value.IsValid() {
		return req, "must be JSON, with no key twice"
	}
	if wrong := frameShape().check(version, value); wrong != "" {
		var named struct {
			ID jsontext.Value `json:"id"`
		}
		if jsonx.Unmarshal(value, &named) == nil && named.ID.Kind() == '"' {
			_ = jsonx.Unmarshal(named.ID, &req.ID) // it is a string
		}
		return req, wrong
	}
	var frame struct {
		Type    string         `json:"type"`
		ID      string         `json:"id"`
		Method  string         `json:"method"`
		Params  jsontext.Value `json:"params"`
		Trace   string         `json:"traceparent"`
		Profile string         `json:"expectedProfileId"`
	}
	if err := jsonx.Unmarshal(value, &frame); err != nil {
		return req, "must be object"
	}
	return protocol.Request{Type: frame.Type, ID: frame.ID, Method: frame.Method, Params: []byte(frame.Params), TraceParent: frame.Trace}, ""
}

// dispatch handles one message.
func (c *conn) dispatch(data []byte) {
	req, wrong := parse(c.version, data)
	if wrong != "" {
		id := clip(req.ID, maxWord)
		if id == "" {
			id = "invalid"
		}
		c.respond(id, nil, invalid("invalid request frame: "+wrong))
		return
	}
	if err := c.server.Access.Limiter.Admit(c.caller); err != nil {
		c.respond(req.ID, nil, c.explain(req.Method, err))
		return
	}
	c.server.Logger.DebugContext(c.ctx, "gateway request", "connection", c.id, "method", clip(req.Method, 100), "trace", traceparent.TraceID(req.TraceParent))
	m, no := c.find(&req)
	if no != nil {
		c.respond(req.ID, nil, no)
		return
	}
	if m.waits && len(data) > c.server.Limits.Waiting {
		c.respond(req.ID, nil, invalid(fmt.Sprintf("invalid %s params: more than %d bytes", m.name, c.server.Limits.Waiting)))
		return
	}
	c.execute(&call{conn: c, id: req.ID, method: m, params: jsontext.Value(req.Params), ctx: c.ctx, trace: traceparent.TraceID(req.TraceParent)})
}

// find returns the requested method, if the client has its scope and the parameters
// are valid.
func (c *conn) find(req *protocol.Request) (*method, *protocol.Error) {
	m := c.server.methods[req.Method]
	switch {
	case req.Method == "connect":
		return nil, invalid("connect is only valid as the first request")
	case m == nil || m.v4 && c.version < protocol.V4:
		return nil, invalid("unknown method: " + clip(req.Method, 100))
	case !c.scopes.has(m.scope(c.version)):
		return nil, c.missing(m.scope(c.version))
	}
	if len(req.Params) == 0 || jsontext.Value(req.Params).Kind() == 'n' {
		req.Params = []byte("{}")
	}
	if wrong := m.params.check(c.version, jsontext.Value(req.Params)); wrong != "" {
		return nil, invalid(fmt.Sprintf("invalid %s params: %s", m.name, wrong))
	}
	return m, nil
}

// missing returns the error for a missing scope, in the form of each version.
func (c *conn) missing(scope string) *protocol.Error {
	message := "missing scope: " + scope
	if c.version < protocol.V4 {
		return invalid(message)
	}
	return with(&protocol.Error{Code: protocol.CodeForbidden, Message: message},
		map[string]any{"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": []string{scope}})
}

// execute runs a request: at once, so that requests keep their order, or in the
// background if it has to wait.
func (c *conn) execute(call *call) {
	if call.method.waits {
		call.background(call.answer)
		return
	}
	call.answer()
}

// background runs do in a goroutine, unless too many are running already.
func (c *call) background(do func()) {
	if c.calls.Add(1) > int64(c.server.Limits.Calls) {
		c.calls.Add(-1)
		e := unavailable("too many requests of this connection are waiting")
		e.Retryable = true
		c.respond(c.id, nil, e)
		return
	}
	c.server.work.Go(func() {
		defer c.calls.Add(-1)
		do()
	})
}

func (c *call) answer() {
	payload, err := c.method.do(c)
	if _, done := payload.(noReply); done {
		return
	}
	if problem, ok := errors.AsType[*protocol.Error](err); ok {
		c.respond(c.id, nil, problem)
	} else if err != nil {
		c.respond(c.id, nil, c.explain(c.method.name, err))
	} else {
		c.respond(c.id, payload, nil)
	}
}

// bind decodes the parameters, which were checked before.
func (c *call) bind(into any) error {
	if err := jsonx.Unmarshal(c.params, into); err != nil {
		return invalid("invalid " + c.method.name + " params")
	}
	return nil
}
