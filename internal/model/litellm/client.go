package litellm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/secret"
)

// Options are the settings of a Client.
type Options struct {
	URL  string        // without /v1
	Key  secret.Source // may read spend logs and, for keys, make them
	HTTP http.RoundTripper
}

const (
	requestTimeout = 60 * time.Second
	maxAnswer      = 64 << 20
	maxError       = 500 // characters of an answer that an error quotes
)

// Client is a client of one LiteLLM.
type Client struct {
	base string
	key  secret.Source
	http *http.Client
}

// New returns a client. Redirects are never followed: the key would go along.
func New(o Options) *Client {
	return &Client{base: strings.TrimRight(o.URL, "/"), key: o.Key, http: &http.Client{
		Transport: o.HTTP, Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// StatusError is an answer with another status than 200.
type StatusError struct {
	What    string // method and path
	Status  int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("LiteLLM: %s: status %d: %s", e.What, e.Status, e.Message)
}

// get asks for a path and reads the answer into out.
func (c *Client) get(ctx context.Context, path string, query url.Values, out any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	return c.do(request, out)
}

func (c *Client) post(ctx context.Context, path string, body, out any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	return c.do(request, out)
}

func (c *Client) do(request *http.Request, out any) error {
	key, err := c.key.Read(request.Context())
	if err != nil {
		return fmt.Errorf("LiteLLM's key: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+key.Reveal())
	what := request.Method + " " + request.URL.Path // without the query
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("LiteLLM: %s: %w", what, withoutURL(err))
	}
	defer response.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("LiteLLM: %s: %w", what, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("LiteLLM: %s: the answer has more than %d bytes", what, maxAnswer)
	case response.StatusCode != http.StatusOK:
		return &StatusError{what, response.StatusCode, short(key.Scrub(string(text)))}
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("LiteLLM: %s: the answer is not what was expected: %w", what, err)
	}
	return nil
}

// withoutURL drops the address, which may hold a query.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

func short(text string) string {
	var e struct {
		Error struct{ Message string }
	}
	if json.Unmarshal([]byte(text), &e) == nil && e.Error.Message != "" {
		text = e.Error.Message
	}
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if runes := []rune(text); len(runes) > maxError {
		return string(runes[:maxError]) + "…"
	}
	return text
}

// ModelInfo returns the answer of GET /model/info as it came.
func (c *Client) ModelInfo(ctx context.Context) ([]byte, error) {
	var info json.RawMessage
	err := c.get(ctx, "/model/info", nil, &info)
	return info, err
}

// Models returns the answer of GET /v1/models as it came.
func (c *Client) Models(ctx context.Context) ([]byte, error) {
	var list json.RawMessage
	err := c.get(ctx, "/v1/models", nil, &list)
	return list, err
}
