package chat

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// The protocols, by the names that configurations use.
const (
	APICompletions = "openai-completions"
	APIMessages    = "anthropic-messages"
)

// Provider is where a model is asked.
type Provider struct {
	API     string // APICompletions or APIMessages; "" is the first
	BaseURL string // as configured, e.g. http://127.0.0.1:8080/v1
	Key     string // "" sends none
	Headers map[string]string
	Client  *http.Client  // nil: one that follows no redirect
	Idle    time.Duration // the longest silence in an answer; 0: 300 s
	// MaxAnswer bounds the text and the arguments of one answer, in bytes;
	// 0: 8 MiB.
	MaxAnswer int
}

// Defaults of a provider.
const (
	DefaultIdle      = 300 * time.Second
	DefaultMaxAnswer = 8 << 20
	maxErrorBody     = 64 << 10
)

// Client asks the models of one provider. It is safe for concurrent use.
type Client struct {
	Provider
	protocol protocol
	url      string
}

// protocol is one way of putting a question and reading the answer.
type protocol interface {
	path() string
	headers(key string) map[string]string
	body(r *Request) any
	reader(limit int, tell func(string)) reader
}

// reader puts an answer together, event by event.
type reader interface {
	// read takes the data of one event; done says that the answer is whole.
	read(data []byte) (done bool, err error)
	answer() *Answer
}

// New returns a client of a provider.
func New(p Provider) (*Client, error) {
	base, err := url.Parse(p.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("model provider: baseUrl %q is no http or https address", p.BaseURL)
	}
	c := &Client{Provider: p}
	switch cmp.Or(p.API, APICompletions) {
	case APICompletions:
		c.protocol = completions{}
	case APIMessages:
		c.protocol = messages{}
	default:
		return nil, fmt.Errorf("model provider: api %q is not spoken here; known: %s, %s", p.API, APICompletions, APIMessages)
	}
	c.url = strings.TrimRight(p.BaseURL, "/") + c.protocol.path()
	c.Idle = cmp.Or(c.Idle, DefaultIdle)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, DefaultMaxAnswer)
	if c.Client == nil {
		c.Client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return c, nil
}

// Ask puts a question and waits for the whole answer; tell, if not nil, hears
// the text as it comes. Errors are *Error, or the context's.
func (c *Client) Ask(ctx context.Context, r *Request, tell func(text string)) (*Answer, error) {
	if tell == nil {
		tell = func(string) {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(c.Idle, func() { cancel(errSilence) })
	defer silence.Stop()
	response, err := c.send(ctx, r)
	if err != nil {
		return nil, c.failure(ctx, CodeUnreachable, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response)
	}
	if kind := response.Header.Get("Content-Type"); kind != "" && !strings.HasPrefix(kind, "text/event-stream") {
		return nil, &Error{Code: CodeGarbage, Message: fmt.Sprintf("the answer is no stream of events but %q", oneLine(kind))}
	}
	into := c.protocol.reader(c.MaxAnswer, tell)
	if err := readAll(newEvents(&heard{response.Body, silence, c.Idle}), into); err != nil {
		return nil, c.failure(ctx, CodeGarbage, err)
	}
	return into.answer(), nil
}

func (c *Client) send(ctx context.Context, r *Request) (*http.Response, error) {
	body, err := json.Marshal(c.protocol.body(r), json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "text/event-stream")
	for name, value := range c.protocol.headers(c.Key) {
		request.Header.Set(name, value)
	}
	for name, value := range c.Headers {
		request.Header.Set(name, value)
	}
	return c.Client.Do(request)
}

// readAll reads events until the answer is whole.
func readAll(from *eventReader, into reader) error {
	for {
		data, err := from.next()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if done, err := into.read(data); done || err != nil {
			return err
		}
	}
}

// heard notes that something came.
type heard struct {
	io.Reader
	silence *time.Timer
	idle    time.Duration
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.silence.Reset(h.idle)
	}
	return n, err
}

var errSilence = errors.New("silence")

// failure says what a broken exchange means.
func (c *Client) failure(ctx context.Context, code Code, err error) error {
	var own *Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errSilence):
		return &Error{Code: CodeStalled, Message: fmt.Sprintf("nothing came for %v", c.Idle), Err: err}
	case cause != nil:
		return cause
	case errors.As(err, &own):
		return own
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{Code: CodeCut, Message: "the answer ended in the middle", Err: err}
	case errors.Is(err, errEventTooLarge):
		return &Error{Code: CodeTooLarge, Message: err.Error(), Err: err}
	case code == CodeGarbage && isNetwork(err):
		return &Error{Code: CodeCut, Message: "the connection broke in the middle of the answer: " + oneLine(err.Error()), Err: err}
	}
	return &Error{Code: code, Message: oneLine(err.Error()), Err: err}
}

// isNetwork tells a broken connection from an answer that makes no sense.
func isNetwork(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) || strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "chunked")
}

// refusal reads an answer that is no success.
func refusal(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	words := said(body)
	after, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return &Error{
		Code:    codeOf(response.StatusCode, string(body)),
		Status:  response.StatusCode,
		After:   time.Duration(min(max(after, 0), 300)) * time.Second,
		Message: oneLine(words),
	}
}

// said finds the message in a provider's error, whatever its shape.
func said(body []byte) string {
	var shape struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &shape) == nil {
		if words := cmp.Or(shape.Error.Message, shape.Message); words != "" {
			return words
		}
	}
	return cmp.Or(string(body), "no reason was given")
}
