package dialect_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy/dialect"
)

func feed(d dialect.Dialect, events ...string) (*dialect.Meter, []dialect.EventKind) {
	m := dialect.NewMeter()
	m.Reset(d)
	var verdicts []dialect.EventKind
	for _, e := range events {
		verdicts = append(verdicts, m.Event([]byte(e)))
	}
	return m, verdicts
}

func TestUsageOfStreams(t *testing.T) {
	m, v := feed(dialect.OpenAI,
		`{"model":"gpt-x","choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":999}"}}],"usage":null}`,
		`{"choices":[{"delta":{"content":"usage"}}],"usage":null}`,
		`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3},"cost":0.0012}}`, `[DONE]`)
	if u := m.Usage; !m.Plausible() || u.Input != 10 || u.Output != 5 || u.Cached != 4 || u.Reasoning != 3 || u.Cost != 1200 || u.Model != "gpt-x" {
		t.Errorf("chat: %+v", u)
	}
	if v[0] != dialect.Content || v[1] != dialect.Content || v[2] != dialect.UsageOnly || v[3] != dialect.Final {
		t.Errorf("verdicts %v", v)
	}
	m, _ = feed(dialect.Anthropic,
		`{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":10,"cache_creation_input_tokens":7,"cache_read_input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_delta","delta":{"text":"hi"}}`, `{"type":"message_delta","delta":{},"usage":{"output_tokens":8}}`, `{"type":"message_delta","usage":{"output_tokens":15}}`)
	if u := m.Usage; !m.Plausible() || u.Input != 20 || u.Output != 15 || u.Cached != 3 || u.Written != 7 || u.Model != "claude-x" {
		t.Errorf("messages: %+v", u)
	}
	m, _ = feed(dialect.Responses, `{"type":"response.created","response":{"id":"r","model":"gpt-5","usage":null}}`, `{"type":"response.output_text.delta","delta":"x"}`,
		`{"type":"response.completed","response":{"usage":{"input_tokens":4,"output_tokens":2,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":1}}}}`)
	if u := m.Usage; !m.Plausible() || u.Input != 4 || u.Output != 2 || u.Cached != 1 || u.Reasoning != 1 || u.Model != "gpt-5" {
		t.Errorf("responses: %+v", u)
	}
	m, v = feed(dialect.Google,
		`{"candidates":[{"content":{"parts":[{"text":"\"usageMetadata\":{\"promptTokenCount\":999}"}]}}],"usageMetadata":{"promptTokenCount":10},"modelVersion":"gemini-x"}`,
		`{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"usageMetadata":{"promptTokenCount":999}}}}]}}]}`,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":5,"thoughtsTokenCount":3,"toolUsePromptTokenCount":2,"totalTokenCount":20,"promptTokensDetails":[{"modality":"TEXT","tokenCount":10}]}}`)
	if u := m.Usage; !m.Plausible() || u.Input != 12 || u.Output != 8 || u.Cached != 4 || u.Reasoning != 3 || u.Model != "gemini-x" || v[2] != dialect.Content {
		t.Errorf("gemini: %+v", u)
	}
}

func TestUsageThatIsNotBelieved(t *testing.T) {
	for _, usage := range []string{
		`{"prompt_tokens":-1,"completion_tokens":1}`, `{"prompt_tokens":1e308,"completion_tokens":1}`, `{"prompt_tokens":"5","completion_tokens":1}`,
		`{"prompt_tokens":99999999999,"completion_tokens":1}`, `{}`, `[]`, `"x"`, `{"prompt_tokens":1,"prompt_tokens":2}`,
	} {
		m, _ := feed(dialect.OpenAI, `{"choices":[{"delta":{"content":"x"}}]}`, `{"choices":[],"usage":`+usage+`}`)
		if m.Plausible() {
			t.Errorf("%s is believed: %+v", usage, m.Usage)
		}
	}
	for _, usage := range []string{`{"promptTokenCount":-1}`, `{"promptTokenCount":5,"thoughtsTokenCount":1e9}`, `{"promptTokenCount":"5"}`, `{"totalTokenCount":5}`, `[]`} {
		if m, _ := feed(dialect.Google, `{"usageMetadata":`+usage+`}`); m.Plausible() {
			t.Errorf("%s is believed: %+v", usage, m.Usage)
		}
	}
	m := dialect.NewMeter()
	m.Reset(dialect.OpenAI)
	m.Whole([]byte(`{"choices":[{"message":{"content":"x","usage":{"prompt_tokens":1,"completion_tokens":1}}}]}`))
	if m.Plausible() {
		t.Error("usage inside of a choice is believed")
	}
}

func TestErrorsAreJSONInEveryDialect(t *testing.T) {
	p := &dialect.Problem{Status: 402, Code: "budget_exceeded", Message: "the \"run\"\n\\ has spent\x00 its budget\u2028"}
	for _, d := range []dialect.Dialect{dialect.OpenAI, dialect.Anthropic, dialect.Responses, dialect.Google} {
		if body := d.AppendError(nil, p); !json.Valid(body) {
			t.Errorf("%s: %s", d, body)
		}
		cut := string(d.AppendStreamError(nil, p, 7))
		_, data, ok := strings.Cut(cut, "data: ")
		if !ok || !strings.HasSuffix(cut, "\n\n") || strings.Count(cut, "\n\n") != 1 || !json.Valid([]byte(data)) {
			t.Errorf("%s: %q", d, cut)
		}
	}
	if got := string(dialect.Anthropic.AppendError(nil, p)); !strings.HasPrefix(got, `{"type":"error","error":{"type":"billing_error"`) {
		t.Error(got)
	}
	if got := string(dialect.Google.AppendError(nil, p)); !strings.HasPrefix(got, `{"error":{"code":402,"message":"`) || !strings.Contains(got, `"status":"PERMISSION_DENIED"`) || !strings.Contains(got, `"reason":"budget_exceeded"`) {
		t.Error(got)
	}
	if got := string(dialect.OpenAI.AppendError(nil, p)); !strings.Contains(got, `"type":"budget_exceeded"`) || !strings.Contains(got, `"code":"budget_exceeded"`) {
		t.Error(got)
	}
}

func TestModels(t *testing.T) {
	ids, err := dialect.ModelIDs([]byte(`{"object":"list","data":[{"id":"a","secret":"s"},{"id":"b"},7]}`))
	if err != nil || strings.Join(ids, ",") != "a,b" {
		t.Fatal(ids, err)
	}
	for _, list := range [][]string{nil, {"a"}, {"a", `b"`}} {
		if body := dialect.AppendModels(nil, list); !json.Valid(body) {
			t.Errorf("%s", body)
		}
	}
}

func FuzzMeter(f *testing.F) {
	f.Add(`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	f.Add(`{"usageMetadata":{"promptTokenCount":2147483648,"toolUsePromptTokenCount":2147483648,"candidatesTokenCount":1,"thoughtsTokenCount":2}}`)
	f.Add(`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`)
	f.Fuzz(func(t *testing.T, data string) {
		for _, d := range []dialect.Dialect{dialect.OpenAI, dialect.Anthropic, dialect.Responses, dialect.Google} {
			m, _ := feed(d, data, data)
			if u := m.Usage; m.Plausible() && (u.Input < 0 || u.Output < 0 || u.Cached > u.Input || u.Reasoning > u.Output || u.Input > 1<<34) {
				t.Fatalf("%q: %+v", data, u)
			}
		}
	})
}
