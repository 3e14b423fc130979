// Package client calls a gateway over HTTP: with a token over the network, or
// without one over the socket in the state directory. It links the standard library
// and package api only. Errors that the gateway answers are *api.Problem.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/atoll-run/atoll/api"
)

// Options name a gateway.
type Options struct {
	URL    string // such as http://127.0.0.1:18789
	Socket string // path of a unix socket, in place of URL
	Token  string // "" on the socket, whose owner needs none
}

// Client sends requests to a gateway. It is safe for concurrent use.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// maxAnswer bounds an answer that is not a stream.
const maxAnswer = 64 << 20

// New returns a client. It connects with the first request.
func New(o Options) (*Client, error) {
	transport := &http.Transport{IdleConnTimeout: 30 * time.Second}
	base := o.URL
	switch {
	case (o.URL == "") == (o.Socket == ""):
		return nil, errors.New("client: give either URL or Socket")
	case o.Socket != "":
		base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", o.Socket)
		}
	default:
		u, err := url.Parse(o.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return nil, errors.New("client: the URL must be http:// or https:// and a host")
		}
	}
	c := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Client{base: strings.TrimSuffix(base, "/"), token: o.Token, http: c}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one HTTP request.
type request struct {
	method, path string
	query, body  any
	content      io.Reader // a body of bytes, in place of body
	header       map[string]string
}

// send sends a request, and returns the answer if its status is a success.
func (c *Client) send(ctx context.Context, q *request) (*http.Response, error) {
	body, kind, err := q.encode()
	if err != nil {
		return nil, err
	}
	target := c.base + q.path
	if values := api.Values(q.query); len(values) > 0 {
		target += "?" + values.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", kind)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if header := traceParent(ctx); header != "" {
		r.Header.Set("Traceparent", header)
	}
	for name, value := range q.header {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		defer response.Body.Close()
		return nil, problemOf(response)
	}
	return response, nil
}

// encode returns the body of a request and its media type.
func (q *request) encode() (body io.Reader, kind string, err error) {
	switch {
	case q.content != nil:
		return q.content, "application/octet-stream", nil
	case q.body == nil:
		return nil, "", nil
	}
	text, err := json.Marshal(q.body)
	return bytes.NewReader(text), "application/json", err
}

// problemOf returns the problem in an answer, or one made from its status if it has
// none.
func problemOf(r *http.Response) error {
	p := &api.Problem{}
	text, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if strings.HasPrefix(r.Header.Get("Content-Type"), api.ProblemType) && json.Unmarshal(text, p) == nil && p.Status == r.StatusCode {
		return p
	}
	return &api.Problem{Type: "about:blank", Title: r.Status, Status: r.StatusCode, Code: "not_a_problem", Detail: fmt.Sprintf("%s %s: %s", r.Request.Method, r.Request.URL.Path, r.Status)}
}

// ask sends a request and decodes the answer.
func ask[A any](ctx context.Context, c *Client, q *request) (*A, error) {
	response, err := c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := new(A)
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(answer); err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	return answer, nil
}

// get requests a path.
func get[A any](ctx context.Context, c *Client, path string, query any) (*A, error) {
	return ask[A](ctx, c, &request{method: http.MethodGet, path: path, query: query})
}

// do sends a body to a path.
func do[A any](ctx context.Context, c *Client, method, path string, body any) (*A, error) {
	return ask[A](ctx, c, &request{method: method, path: path, body: body})
}

// pathWith returns a path with an escaped name in it.
func pathWith(before, name, after string) string { return before + url.PathEscape(name) + after }
