package chat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model is a provider that answers with the given status and body, and keeps
// what it was asked.
type model struct {
	*httptest.Server
	asked  map[string]any
	header http.Header
	path   string
}

func answering(t *testing.T, status int, body string) *model {
	t.Helper()
	m := &model{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, &m.asked); err != nil {
			t.Errorf("request: %v", err)
		}
		m.header, m.path = r.Header, r.URL.Path
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(m.Close)
	return m
}

func client(t *testing.T, p chat.Provider) *chat.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p.Client = &http.Client{Transport: transport}
	c, err := chat.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stream writes events, with the names that their type has.
func stream(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, ": ping\nevent: any\ndata: %s\n\n", d)
	}
	return b.String()
}

func question() *chat.Request {
	return &chat.Request{
		Model: "m", System: "be brief",
		Messages: []chat.Message{
			{Role: chat.User, Text: "what is in a?"},
			{Role: chat.Assistant, Calls: []chat.Call{{ID: "c1", Name: "read", Args: `{"path":"a"}`}}},
			{Role: chat.Tool, CallID: "c1", Text: "1 hello"},
		},
		Functions: []chat.Function{{Name: "read", Description: "reads", Schema: []byte(`{"type":"object"}`)}},
	}
}

const (
	completionsText = `{"model":"m-1","choices":[{"delta":{"content":"Hel"},"finish_reason":null}]}`
	completionsCall = `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"exec","arguments":"{\"command\""}}]}}]}`
	completionsRest = `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":\"ls\"}"}}]},"finish_reason":"tool_calls"}]}`
	completionsUsed = `{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3}}}`
)

func TestCompletions(t *testing.T) {
	m := answering(t, 200, stream(completionsText, `{"choices":[{"delta":{"content":"lo"}}]}`, completionsCall, completionsRest, completionsUsed, "[DONE]"))
	var heard strings.Builder
	got, err := client(t, chat.Provider{BaseURL: m.URL + "/v1", Key: "k"}).Ask(t.Context(), question(), func(s string) { heard.WriteString(s) })
	if err != nil {
		t.Fatal(err)
	}
	want := &chat.Answer{
		Model: "m-1", Text: "Hello", Stop: chat.WantsTool,
		Calls: []chat.Call{{ID: "x", Name: "exec", Args: `{"command":"ls"}`}},
		Usage: chat.Usage{Input: 11, Output: 4, CacheRead: 3},
	}
	if diff := cmp.Diff(want, got); diff != "" || heard.String() != "Hello" {
		t.Errorf("heard %q, answer (-want +got):\n%s", heard.String(), diff)
	}
	if m.path != "/v1/chat/completions" || m.header.Get("Authorization") != "Bearer k" || len(m.asked["messages"].([]any)) != 4 {
		t.Errorf("asked %s %v", m.path, m.asked)
	}
}

func TestMessages(t *testing.T) {
	m := answering(t, 200, stream(
		`{"type":"message_start","message":{"model":"m-2","usage":{"input_tokens":5,"cache_read_input_tokens":2,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"y","name":"ls","input":{}}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\".\"}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`))
	got, err := client(t, chat.Provider{BaseURL: m.URL, API: chat.APIMessages, Key: "k"}).Ask(t.Context(), question(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &chat.Answer{
		Model: "m-2", Text: "Hi", Stop: chat.WantsTool,
		Calls: []chat.Call{{ID: "y", Name: "ls", Args: `{"path":"."}`}},
		Usage: chat.Usage{Input: 7, Output: 9, CacheRead: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if m.path != "/messages" || m.header.Get("X-Api-Key") != "k" || m.asked["system"] != "be brief" || len(m.asked["messages"].([]any)) != 3 {
		t.Errorf("asked %s %v", m.path, m.asked)
	}
}

// Pictures of results reach models in each provider's own shape: within the result, or as
// words of the user after the last result of an answer.
func TestImages(t *testing.T) {
	q := question()
	q.Messages[2].Images = []chat.Image{{MediaType: "image/jpeg", Data: []byte("jpeg")}}
	q.Messages[1].Calls = append(q.Messages[1].Calls, chat.Call{ID: "c2", Name: "read", Args: "{}"})
	q.Messages = append(q.Messages, chat.Message{Role: chat.Tool, CallID: "c2", Text: "2"}, chat.Message{Role: chat.User, Text: "and?"})
	for api, want := range map[string]string{
		chat.APICompletions: `[{"role":"tool","content":"1 hello","tool_call_id":"c1"},{"role":"tool","content":"2","tool_call_id":"c2"},` +
			`{"role":"user","content":[{"type":"text","text":"Picture in the result of call c1:"},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,anBlZw=="}}]},` +
			`{"role":"user","content":"and?"}]`,
		chat.APIMessages: `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"1 hello"},` +
			`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"anBlZw=="}}]},{"type":"tool_result","tool_use_id":"c2","content":"2"},{"type":"text","text":"and?"}]}]`,
	} {
		m := answering(t, 500, "")
		_, _ = client(t, chat.Provider{BaseURL: m.URL, API: api}).Ask(t.Context(), q, nil)
		var expected []any
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		asked, _ := m.asked["messages"].([]any)
		if diff := cmp.Diff(expected, asked[max(0, len(asked)-len(expected)):]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", api, diff)
		}
	}
}

// How much a model thinks is said in each provider's own words, or not at all.
func TestThinking(t *testing.T) {
	begins := []chat.Message{{Role: chat.User, Text: "hi"}}
	goesOn := append(begins, chat.Message{Role: chat.Assistant, Calls: []chat.Call{{ID: "1", Name: "f", Args: "{}"}}}, chat.Message{Role: chat.Tool, CallID: "1", Text: "x"})
	for _, c := range []struct {
		api      string
		level    chat.Level
		messages []chat.Message
		effort   any
		budget   any
		most     any
	}{
		{chat.APICompletions, chat.High, begins, "high", nil, nil},
		{chat.APICompletions, chat.Low, goesOn, "low", nil, nil},
		{chat.APICompletions, chat.Off, begins, nil, nil, nil},
		{chat.APICompletions, "", begins, nil, nil, nil},
		{chat.APIMessages, chat.Medium, begins, nil, 8192.0, 8192.0 + 1000},
		{chat.APIMessages, chat.Medium, goesOn, nil, nil, 1000.0},
		{chat.APIMessages, chat.Off, begins, nil, nil, 1000.0},
	} {
		m := answering(t, http.StatusOK, "")
		r := &chat.Request{Model: "m", Messages: c.messages, Thinking: c.level}
		if c.most != nil {
			r.MaxTokens = 1000
		}
		_, _ = client(t, chat.Provider{API: c.api, BaseURL: m.URL}).Ask(t.Context(), r, func(string) {}) // the answer is empty
		thinking, _ := m.asked["thinking"].(map[string]any)
		if m.asked["reasoning_effort"] != c.effort || thinking["budget_tokens"] != c.budget || m.asked["max_tokens"] != c.most {
			t.Errorf("%s %q: %v", c.api, c.level, m.asked)
		}
	}
}

func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   chat.Code
	}{
		"nothing at all":            {200, "", chat.CodeCut},
		"cut between events":        {200, stream(completionsText), chat.CodeCut},
		"cut in an event":           {200, "data: {\"cho", chat.CodeCut},
		"done without a reason":     {200, stream(completionsText, "[DONE]"), chat.CodeCut},
		"no JSON":                   {200, stream("hello"), chat.CodeGarbage},
		"another page":              {200, "<html>welcome</html>", chat.CodeCut},
		"call out of order":         {200, stream(`{"choices":[{"delta":{"tool_calls":[{"index":7,"id":"x"}]}}]}`), chat.CodeGarbage},
		"call with a negative":      {200, stream(`{"choices":[{"delta":{"tool_calls":[{"index":-1,"id":"x"}]}}]}`), chat.CodeGarbage},
		"call without a name":       {200, stream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x"}]},"finish_reason":"stop"}]}`, "[DONE]"), chat.CodeGarbage},
		"two calls of one id":       {200, stream(`{"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"name":"a"}},{"id":"x","function":{"name":"a"}}]},"finish_reason":"stop"}]}`, "[DONE]"), chat.CodeGarbage},
		"large":                     {200, strings.Repeat(stream(completionsText), 400), chat.CodeTooLarge},
		"an endless event":          {200, "data: " + strings.Repeat("x", 5<<20), chat.CodeTooLarge},
		"error in the stream":       {200, stream(`{"error":{"message":"upstream died","type":"server_error"}}`), chat.CodeUnavailable},
		"budget in the stream":      {200, stream(completionsText, `{"error":{"message":"budget spent","type":"budget_exceeded"}}`), chat.CodeBudget},
		"key refused":               {401, `{"error":{"message":"no"}}`, chat.CodeUnauthorized},
		"out of money":              {402, `{"error":{"message":"no"}}`, chat.CodeBudget},
		"later":                     {429, `{"error":{"message":"no"}}`, chat.CodeRateLimited},
		"their fault":               {503, "", chat.CodeUnavailable},
		"too long":                  {400, `{"error":{"message":"This model's maximum context length is 8 tokens"}}`, chat.CodeContextOverflow},
		"too long, in other words":  {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}`, chat.CodeContextOverflow},
		"our fault":                 {400, `{"error":{"message":"bad tool"}}`, chat.CodeRejected},
		"elsewhere":                 {302, "", chat.CodeRejected},
		"an error of many megabyte": {500, strings.Repeat("\x1b[2J", 1<<20), chat.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			m := answering(t, c.status, c.body)
			answer, err := client(t, chat.Provider{BaseURL: m.URL, MaxAnswer: 1000}).Ask(t.Context(), question(), nil)
			var e *chat.Error
			if !errors.As(err, &e) || e.Code != c.want || answer != nil {
				t.Fatalf("answer %v, error %v; want code %s", answer, err, c.want)
			}
			if strings.ContainsAny(e.Error(), "\x1b\n") || len(e.Error()) > 600 {
				t.Errorf("message is not fit to print: %q", e.Error())
			}
			if c.status == 429 && e.After != 7*time.Second {
				t.Errorf("after %v", e.After)
			}
		})
	}
}

// A provider that falls silent is given up, and one that trickles is not.
func TestSilence(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, stream(completionsText))
		w.(http.Flusher).Flush()
		<-stop
	}))
	defer server.Close()
	defer close(stop)
	_, err := client(t, chat.Provider{BaseURL: server.URL, Idle: 50 * time.Millisecond}).Ask(t.Context(), question(), nil)
	var e *chat.Error
	if !errors.As(err, &e) || e.Code != chat.CodeStalled || !e.Retryable() {
		t.Errorf("error %v", err)
	}
}

func TestCancel(t *testing.T) {
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_, _ = io.WriteString(w, stream(completionsText))
		w.(http.Flusher).Flush()
		<-stop
	}))
	defer server.Close()
	defer close(stop)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := client(t, chat.Provider{BaseURL: server.URL}).Ask(ctx, question(), func(string) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestProviders(t *testing.T) {
	for _, p := range []chat.Provider{{}, {BaseURL: "ftp://x/"}, {BaseURL: "://"}, {BaseURL: "http://x", API: "telepathy"}} {
		if _, err := chat.New(p); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
	c := client(t, chat.Provider{BaseURL: "http://127.0.0.1:1/v1"})
	var e *chat.Error
	if _, err := c.Ask(t.Context(), question(), nil); !errors.As(err, &e) || e.Code != chat.CodeUnreachable || !e.Retryable() {
		t.Errorf("nobody there: %v", err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(stream(completionsText, completionsCall, completionsRest, completionsUsed, "[DONE]")), false)
	f.Add([]byte(stream(`{"type":"message_start"}`, `{"type":"message_stop"}`)), true)
	f.Fuzz(func(t *testing.T, body []byte, anthropic bool) {
		p := chat.Provider{BaseURL: "http://model.invalid", MaxAnswer: 1 << 10, Client: &http.Client{Transport: canned(body)}}
		if anthropic {
			p.API = chat.APIMessages
		}
		c, err := chat.New(p)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Ask(t.Context(), &chat.Request{}, nil)
		if (answer == nil) == (err == nil) {
			t.Fatalf("answer %v, error %v", answer, err)
		}
		if answer != nil && len(answer.Text) > 1<<10 {
			t.Fatal("larger than the limit")
		}
	})
}

// canned answers every request with the same body.
type canned []byte

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}

// What is no stream is not read as one.
func TestNoStream(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello") }))
	t.Cleanup(server.Close)
	_, err := client(t, chat.Provider{BaseURL: server.URL}).Ask(t.Context(), question(), nil)
	var e *chat.Error
	if !errors.As(err, &e) || e.Code != chat.CodeGarbage || !strings.Contains(e.Message, "text/html") {
		t.Errorf("error %v", err)
	}
}
