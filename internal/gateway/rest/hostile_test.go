package rest_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/rest"
	"github.com/atoll-run/atoll/internal/membudget"
)

// Every bad request is answered with a problem that names the fault, and starts
// nothing.
func TestBadRequests(t *testing.T) {
	o := newServer(t, nil)
	for name, c := range map[string]struct {
		body    any
		status  int
		code    string
		pointer string
	}{
		"empty":                {"", 400, "invalid_json", ""},
		"no JSON":              {"{", 400, "invalid_json", ""},
		"two documents":        {`{"message":"x"}{}`, 400, "invalid_json", ""},
		"a list":               {`[]`, 422, "invalid_request", "/"},
		"unknown field":        {`{"message":"x","budget":{"dollars":1}}`, 422, "invalid_request", "/budget/dollars"},
		"same field twice":     {`{"message":"x","message":"y"}`, 400, "invalid_json", "/message"},
		"another case":         {`{"Message":"x"}`, 422, "invalid_request", "/Message"},
		"wrong type":           {`{"message":7}`, 422, "invalid_request", "/message"},
		"no task":              {`{}`, 422, "invalid_request", "/message"},
		"both tasks":           {`{"message":"x","messages":[{"role":"user","content":"y"}]}`, 422, "invalid_request", "/message"},
		"a role of its own":    {`{"messages":[{"role":"system","content":"y"}]}`, 422, "invalid_request", "/messages/0/role"},
		"the last is not ours": {`{"messages":[{"role":"assistant","content":"y"}]}`, 422, "prompt_empty", ""},
		"line break in a name": {`{"message":"x","account":"a\nb"}`, 422, "invalid_request", "/account"},
		"negative":             {`{"message":"x","timeoutSeconds":-1}`, 422, "invalid_request", "/timeoutSeconds"},
		"a mode alone":         {`{"message":"x","branchMode":"thread"}`, 422, "invalid_request", "/branchName"},
		"no such agent":        {`{"message":"x","graphId":"sandbox:nobody"}`, 422, "unknown_variant", ""},
		"a path as an id":      {`{"message":"x","id":"../../etc"}`, 422, "invalid_request", "/id"},
		"deep":                 {strings.Repeat("[", 1_000_000), 422, "invalid_request", "/"},
		"too much":             {`{"message":"` + strings.Repeat("x", 5<<20) + `"}`, 413, "body_too_large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem(t, o.ask("root", http.MethodPost, runsPath, c.body, async...), c.status, c.code)
			if c.pointer != "" && (len(p.Errors) != 1 || p.Errors[0].Pointer != c.pointer) {
				t.Errorf("%+v, want %s", p.Errors, c.pointer)
			}
		})
	}
	if list := into[api.Runs](t, o.ask("root", http.MethodGet, runsPath, nil), http.StatusOK); len(list.Runs) > 0 {
		t.Errorf("%+v", list.Runs)
	}
}

func TestBadPathsAndHeaders(t *testing.T) {
	o := newServer(t, nil)
	problem(t, o.ask("root", http.MethodGet, "/api/v1/nothing", nil), http.StatusNotFound, "no_such_route")
	a := o.ask("root", http.MethodPut, runsPath, nil)
	problem(t, a, http.StatusMethodNotAllowed, "method_not_allowed")
	if a.Header.Get("Allow") != "POST, GET" {
		t.Error(a.Header.Get("Allow"))
	}
	problem(t, o.ask("root", http.MethodPost, runsPath, task("x"), "Content-Type", "text/plain"), http.StatusUnsupportedMediaType, "unsupported_media_type")
	problem(t, o.ask("root", http.MethodPost, runsPath, task("x"), rest.IdempotencyKey, strings.Repeat("k", 300)), http.StatusUnprocessableEntity, "invalid_request")
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?limit=1&limit=2", "?open=perhaps", "?nothing=1", "?account=%ff"} {
		problem(t, o.ask("root", http.MethodGet, runsPath+query, nil), http.StatusUnprocessableEntity, "invalid_request")
	}
	problem(t, o.ask("root", http.MethodGet, runsPath+"?%zz", nil), http.StatusBadRequest, "invalid_query")
}

func TestRequestIDs(t *testing.T) {
	o := newServer(t, nil)
	for given, kept := range map[string]bool{"abc-1.2_3": true, "": false, "a b": false, strings.Repeat("x", 65): false, `"><script>`: false} {
		a := o.ask("root", http.MethodGet, "/api/v1/ai/agents", nil, rest.RequestID, given)
		if got := a.Header.Get(rest.RequestID); (got == given) != kept || got == "" {
			t.Errorf("%q became %q", given, got)
		}
	}
}

// Who may do what, in a table.
func TestScopes(t *testing.T) {
	o := newServer(t, nil)
	problem(t, o.ask("", http.MethodGet, runsPath, nil), http.StatusUnauthorized, "unauthorized")
	p := problem(t, o.ask("reader", http.MethodPost, runsPath, task("x")), http.StatusForbidden, "forbidden")
	if !strings.Contains(p.Detail, string(access.Run)) {
		t.Error(p.Detail)
	}
	limited := newServer(t, func(o *rest.Options) { o.Limits = &counter{deny: access.ErrTooMany} })
	problem(t, limited.ask("root", http.MethodGet, runsPath, nil), http.StatusTooManyRequests, "too_many_requests")
}

// A reader that takes nothing is closed, and blocks no other; their number is
// bounded.
func TestSlowReaders(t *testing.T) {
	o := newServer(t, func(o *rest.Options) { o.Limit = rest.Limit{Send: 500 * time.Millisecond, Streams: 2} })
	// More events than sockets have room for.
	r := o.start("alice", `i=0; x=$(head -c 60000 /dev/zero | tr '\0' x); while [ $i -lt 250 ]; do echo "say $x" >&2; i=$((i+1)); done; echo done`)
	path := runsPath + "/" + r.ID + "/events"
	conn, err := net.Dial("tcp", strings.TrimPrefix(o.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer alice\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	o.until("alice", r.ID, api.RunOver)
	for end := time.Now().Add(patience); o.rest.Streams() > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the reader is still there")
		}
	}
	if events := readSSE(strings.NewReader(string(o.ask("alice", http.MethodGet, path, nil).body))); events[len(events)-1].event != "receipt" {
		t.Errorf("%+v", events[len(events)-1].event)
	}
	waiting := o.start("alice", "sleep 1000")
	path = runsPath + "/" + waiting.ID + "/events"
	for range 2 {
		open := o.open(t.Context(), "alice", "GET "+path, nil)
		t.Cleanup(func() { _ = open.Body.Close() })
	}
	problem(t, o.ask("alice", http.MethodGet, path, nil), http.StatusTooManyRequests, "too_many_requests")
	into[api.Run](t, o.ask("alice", http.MethodDelete, runsPath+"/"+waiting.ID, nil), http.StatusOK)
}

// A body that never ends is not waited for.
func TestSlowBody(t *testing.T) {
	o := newPacedServer(t, membudget.Pace{Grace: 300 * time.Millisecond}, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(o.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "POST "+runsPath+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer root\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"message\":")
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	text, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(text), "408 Request Timeout") {
		t.Errorf("%s, %v", text, err)
	}
}

// Bodies and queries are hostile: whatever they are, there is a request or a
// problem, and never a long one.
func FuzzDecode(f *testing.F) {
	f.Add(`{"message":"x","budget":{"usd":1e400}}`, "limit=1&open=true")
	f.Add(`{"messages":[{"role":"user","content":"\ud800"}]}`, "cursor=%00")
	f.Add("[[[[", "&&;==")
	f.Fuzz(func(t *testing.T, body, query string) {
		var q api.RunQuery
		for _, err := range []error{rest.DecodeJSON([]byte(body), &api.RunRequest{}), rest.DecodeQuery(query, &q)} {
			if err == nil {
				continue
			}
			p, ok := errors.AsType[*api.Problem](err)
			if !ok || p.Status < 400 || p.Status > 422 || p.Code == "" {
				t.Errorf("%q %q: %v", body, query, err)
			}
			for _, e := range p.Errors {
				if len(e.Pointer) > 200 {
					t.Errorf("a pointer of %d bytes", len(e.Pointer))
				}
			}
		}
		if q.Limit < 0 || q.Limit > 1000 {
			t.Errorf("limit %d", q.Limit)
		}
	})
}
