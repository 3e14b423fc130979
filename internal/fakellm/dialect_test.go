package fakellm_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/fakellm"
)

// send posts a body to a path and returns status and answer, as far as it came.
func send(t *testing.T, server *fakellm.Server, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.BaseURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := tcpClient(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return answer.StatusCode, strings.TrimSpace(string(text))
}

var callsLs = fakellm.Turn{
	Text: "Grüße", Calls: []fakellm.Call{{Name: "exec", Arguments: `{"command":"ls"}`}}, Usage: fakellm.Usage{Prompt: 7, Completion: 5, Cached: 2},
}

func TestMessagesAsAStream(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{callsLs})
	_, got := send(t, server, "/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	want := `event: message_start
data: {"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":2,"output_tokens":1}},"type":"message_start"}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"content_block":{"type":"text","text":""},"index":0,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"text":"Gr","type":"text_delta"},"index":0,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"text":"üß","type":"text_delta"},"index":0,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"text":"e","type":"text_delta"},"index":0,"type":"content_block_delta"}

event: content_block_stop
data: {"index":0,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"type":"tool_use","id":"call_1_1","name":"exec","input":{}},"index":1,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"partial_json":"{\"comm","type":"input_json_delta"},"index":1,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"partial_json":"and\":\"","type":"input_json_delta"},"index":1,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"partial_json":"ls\"}","type":"input_json_delta"},"index":1,"type":"content_block_delta"}

event: content_block_stop
data: {"index":1,"type":"content_block_stop"}

event: message_delta
data: {"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":{"output_tokens":5}}

event: message_stop
data: {"type":"message_stop"}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The same conversation in every dialect: words and a call, a result, words.
func TestEveryDialectHoldsAConversation(t *testing.T) {
	after := fakellm.Say("done")
	after.When = "file.txt"
	for name, d := range map[string]struct{ path, first, words, second string }{
		"chat": {
			"/chat/completions", `{"messages":[{"role":"user","content":"go"}],"tools":[{"function":{"name":"exec"}}]}`,
			`{"role":"assistant","content":"Grüße","tool_calls":[{"id":"call_1_1","type":"function","function":{"name":"exec","arguments":"{\"command\":\"ls\"}"}}]}`,
			`{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"Grüße"},{"role":"tool","content":"file.txt"}]}`,
		},
		"messages": {
			"/messages", `{"messages":[{"role":"user","content":"go"}],"tools":[{"name":"exec"}]}`,
			`[{"type":"text","text":"Grüße"},{"type":"tool_use","id":"call_1_1","name":"exec","input":{"command":"ls"}}]`,
			`{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":"Grüße"},
			  {"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_1","content":[{"type":"text","text":"file.txt"}]}]}]}`,
		},
		"responses": {
			"/responses", `{"input":"go","tools":[{"type":"function","name":"exec"}]}`,
			`{"arguments":"{\"command\":\"ls\"}","call_id":"call_1_1","id":"fc_call_1_1","name":"exec","status":"completed","type":"function_call"}`,
			`{"input":[{"role":"user","content":"go"},{"type":"message","role":"assistant","content":"Grüße"},{"type":"function_call","call_id":"call_1_1"},
			  {"type":"function_call_output","call_id":"call_1_1","output":"file.txt"}]}`,
		},
		"gemini": {
			"beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"go"}]}],"tools":[{"functionDeclarations":[{"name":"exec"}]}]}`,
			`[{"text":"Grüße"},{"functionCall":{"args":{"command":"ls"},"id":"call_1_1","name":"exec"}}]`,
			`{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"text":"Grüße"}]},{"role":"model","parts":[{"functionCall":{"name":"exec"}}]},
			  {"role":"user","parts":[{"functionResponse":{"name":"exec","response":{"output":"file.txt"}}}]}]}`,
		},
	} {
		server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{callsLs, after})
		server.BeginAnew()
		if _, got := send(t, server, d.path, d.first); !strings.Contains(got, d.words) || !json.Valid([]byte(got)) {
			t.Errorf("%s: %s\nholds no %s", name, got, d.words)
		}
		if _, got := send(t, server, d.path, d.second); !strings.Contains(got, `"done"`) {
			t.Errorf("%s, with the result: %s", name, got)
		}
		if diff := cmp.Diff([]string{"exec"}, server.Requests()[0].ToolNames()); diff != "" || server.Err() != nil {
			t.Errorf("%s: %s %v", name, diff, server.Err())
		}
	}
}

func TestResponsesAsAStream(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{callsLs})
	_, got := send(t, server, "/responses", `{"model":"m","stream":true,"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}]}`)
	var kinds []string
	for line := range strings.Lines(got) {
		if name, ok := strings.CutPrefix(line, "event: response."); ok {
			kinds = append(kinds, strings.TrimSpace(name))
		}
	}
	want := strings.Fields(`created in_progress output_item.added content_part.added output_text.delta output_text.delta output_text.delta
		output_text.done content_part.done output_item.done output_item.added function_call_arguments.delta function_call_arguments.delta
		function_call_arguments.delta function_call_arguments.done output_item.done completed`)
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(got, `"usage":{"input_tokens":7,"input_tokens_details":{"cached_tokens":2},"output_tokens":5`) {
		t.Errorf("the end tells no usage: %s", got)
	}
}

// Every event of Google's API has the count so far, and the last one says why it is the
// last. A request for JSON gets an example of its schema.
func TestGeminiAsAStream(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{callsLs})
	_, got := send(t, server, "beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`)
	const head, tail = `data: {"candidates":[{"content":{"parts":[`, `"modelVersion":"m","responseId":"resp_1","usageMetadata":{"cachedContentTokenCount":2,"candidatesTokenCount":`
	want := head + `{"text":"Gr"}],"role":"model"},"index":0}],` + tail + `0,"promptTokenCount":7,"totalTokenCount":7}}` + "\n\n" +
		head + `{"text":"üß"}],"role":"model"},"index":0}],` + tail + `1,"promptTokenCount":7,"totalTokenCount":8}}` + "\n\n" +
		head + `{"text":"e"}],"role":"model"},"index":0}],` + tail + `2,"promptTokenCount":7,"totalTokenCount":9}}` + "\n\n" +
		head + `{"functionCall":{"args":{"command":"ls"},"id":"call_1_1","name":"exec"}}],"role":"model"},"finishReason":"STOP","index":0}],` + tail + `5,"promptTokenCount":7,"totalTokenCount":12}}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, got = send(t, server, "beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],
		"generationConfig":{"responseJsonSchema":{"type":"object","properties":{"choice":{"type":"string","enum":["flash","pro"]},"score":{"type":"integer"}}}}}`)
	if !strings.Contains(got, `{"text":"{\"choice\":\"flash\",\"score\":1}"}`) {
		t.Error(got)
	}
}

func TestCountsTokens(t *testing.T) {
	server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{callsLs})
	if _, got := send(t, server, "beta/models/m:countTokens", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`); got != `{"totalTokens":7}` {
		t.Error(got)
	}
	if _, got := send(t, server, "/messages/count_tokens", `{"messages":[{"role":"user","content":"hi"}]}`); got != `{"input_tokens":7}` {
		t.Error(got)
	}
}

// What goes wrong first goes wrong as often as the script says, and is told in
// the caller's dialect.
func TestFirstRequestsFail(t *testing.T) {
	turn := callsLs
	turn.First = []fakellm.Turn{
		{Status: 529, Text: "later", Header: map[string]string{"Retry-After": "0"}},
		{Text: "this breaks off", Cut: 4},
	}
	server := listen(t, "tcp", "127.0.0.1:0", fakellm.Script{turn})
	const body = `{"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	if status, got := send(t, server, "/messages", body); status != 529 || got != `{"error":{"message":"later","type":"overloaded_error"},"type":"error"}` {
		t.Errorf("first: %d %s", status, got)
	}
	if _, got := send(t, server, "/messages", body); strings.Count(got, "event: ") != 4 {
		t.Errorf("second, which breaks off: %s", got)
	}
	if _, got := send(t, server, "/messages", body); !strings.Contains(got, "message_stop") {
		t.Errorf("third: %s", got)
	}
}
