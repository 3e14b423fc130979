package ask_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy/ask"
)

var strict = ask.Rules{Strict: true, MaxN: 4, MaxOutput: 100000, InjectUsage: true, ForbidUnsent: true}

func read(body string, shape ask.Shape, rules *ask.Rules) error {
	var a ask.Ask
	return ask.NewReader().Read(&a, []byte(body), shape, rules)
}

func TestWhatIsAskedFor(t *testing.T) {
	var a ask.Ask
	err := ask.NewReader().Read(&a, []byte(`{"messages":[{"role":"user","content":"hi"}],"mod\u0065l":"gpt","stream":true,"n":2,"max_tokens":7,"max_completion_tokens":9,
		"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"url":{"type":"string"}}}}}]}`), ask.Chat, &strict)
	if err != nil || string(a.Model) != "gpt" || !a.Stream || a.N != 2 || a.MaxOutput != 9 || !a.IncludeUsage || len(a.Edits()) != 0 {
		t.Fatalf("%+v %v", a, err)
	}
}

func TestUsageIsAskedForBySplicing(t *testing.T) {
	for in, want := range map[string]string{
		`{"model":"m","stream":true}`:                                           `{"stream_options":{"include_usage":true},"model":"m","stream":true}`,
		`{"model":"m","stream":true,"stream_options":null}`:                     `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"m","stream":true,"stream_options": {} }`:                     `{"model":"m","stream":true,"stream_options": {"include_usage":true} }`,
		`{"model":"m","stream":true,"stream_options":{"x":1}}`:                  `{"model":"m","stream":true,"stream_options":{"include_usage":true,"x":1}}`,
		`{"model":"m","stream":true,"stream_options":{"include_usage": false}}`: `{"model":"m","stream":true,"stream_options":{"include_usage": true}}`,
		`{"model":"m","stream":true,"stream_options":{"include_usage":null}}`:   `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"m","stream":true,"stream_options":{"include_usage":true}}`:   `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`,
		`{"model":"m","stream":false}`:                                          `{"model":"m","stream":false}`,
		`{"model":"m"}`:                                                         `{"model":"m"}`,
	} {
		var a ask.Ask
		if err := ask.NewReader().Read(&a, []byte(in), ask.Chat, &strict); err != nil {
			t.Fatal(in, err)
		}
		got := string(a.Append(nil, []byte(in)))
		var pieces strings.Builder
		for _, p := range a.Pieces(nil, []byte(in)) {
			pieces.Write(p)
		}
		if got != want || pieces.String() != want || a.SizeAfterEdits(len(in)) != len(want) {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	var a ask.Ask
	in := `{"model":"m","stream":true}`
	if err := ask.NewReader().Read(&a, []byte(in), ask.Responses, &strict); err != nil {
		t.Fatal(err)
	}
	if got := string(a.Append(nil, []byte(in))); got != `{"store":false,"model":"m","stream":true}` {
		t.Error(got)
	}
}

func part(p string) string {
	return `{"model":"m","messages":[{"role":"user","content":[` + p + `]}]}`
}

func TestWhatIsRefusedAlways(t *testing.T) {
	open := ask.Rules{MaxN: 4, MaxOutput: 100000}
	for body, status := range map[string]int{
		``: 400, `[]`: 400, `{}`: 400, `{"model":""}`: 400, `{"model":1}`: 400, `{"model":null}`: 400, `{"model":"a b"}`: 400,
		`{"model":"http://x/y"}`: 400, `{"model":"` + strings.Repeat("m", 1<<20) + `"}`: 400, `{"model":"a\nb"}`: 400,
		`{"model":"dear","MODEL":"cheap"}`: 400, `{"model":"dear","model":"cheap"}`: 400, `{"model":"dear","mod\u0065l":"cheap"}`: 400,
		`{"MODEL":"cheap"}`: 400, `{"model":"m","Stream":true}`: 400, `{"model":"m"}x`: 400, `{"model":"m","x":NaN}`: 400,
		`{"model":"m","stream":"true"}`: 400, `{"model":"m","max_tokens":1e9}`: 400, `{"model":"m","max_tokens":"9"}`: 400,
		`{"model":"m","max_tokens":-1}`: 400, `{"model":"m","n":0}`: 400, `{"model":"m","stream_options":[]}`: 400,
		`{"model":"m","n":128}`: 403, `{"model":"m","best_of":9}`: 403, `{"model":"m","max_completion_tokens":1000000}`: 403,
		`{"model":"m","service_tier":"priority"}`: 403, `{"model":"m","api_base":"http://x"}`: 403, `{"model":"m","API_KEY":"x"}`: 403,
		`{"model":"m","litellm_metadata":{}}`: 403, `{"model":"m","mock_response":"x"}`: 403, `{"model":"m","input_cost_per_token":0}`: 403,
		`{"model":"m","metadata":{"spend_logs_metadata":{}}}`: 403, `{"model":"m","metadata":{"Tags":[]}}`: 403, `{"model":"m","models":["x"]}`: 403,
		`{"model":"m","fallbacks":["x"]}`: 403, `{"model":"m","aws_region_name":"x"}`: 403, `{"model":"m","tags":["x"]}`: 403,
	} {
		err := read(body, ask.Chat, &open)
		if r, ok := errors.AsType[*ask.Refusal](err); !ok || r.Status != status {
			t.Errorf("%.80s: %v, want %d", body, err, status)
		}
	}
	if err := read(part(`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`), ask.Chat, &open); err != nil {
		t.Errorf("an address under the open policy: %v", err)
	}
}

func TestWhatIsRefusedWhenStrict(t *testing.T) {
	top := func(member string) string { return `{"model":"m",` + member + `}` }
	for _, body := range []string{
		part(`{"type":"image_url","image_url":{"url":"https://x/y.png"}}`), part(`{"type":"image_url","image_url":{"URL":"https://x/y.png"}}`),
		part(`{"type":"input_image","image_url":"http://x"}`), part(`{"type":"input_image","image_url":"//x"}`), part(`{"type":"input_image","image_url":"\u0068ttp://x"}`),
		part(`{"type":"input_file","file_url":"http://x"}`), part(`{"type":"input_file","file_id":"file-1"}`), part(`{"type":"file","file":{"file_data":"https://x"}}`),
		part(`{"type":"document","source":{"type":"url","url":"http://x"}}`), part(`{"type":"image","source":{"type":"file","file_id":"f"}}`),
		part(`{"type":"tool_result","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}`),
		top(`"tools":[{"type":"mcp","server_url":"http://x"}]`), top(`"tools":[{"type":"web_search"}]`), top(`"tools":[{"type":"namespace","tools":[{"type":"web_search"}]}]`), top(`"tools":[{"type":"web_search_20250305"}]`),
		top(`"tools":[{"type":"web_fetch_20250910"}]`), top(`"tools":[{"type":"code_interpreter"}]`), top(`"tools":[{"type":"computer_use_preview"}]`),
		top(`"tools":[{"type":"file_search"}]`), top(`"tools":[{"type":"container"}]`), top(`"tools":[{"type":"image_generation"}]`),
		top(`"mcp_servers":[{"url":"x"}]`), top(`"background":true`), top(`"store":true`), top(`"previous_response_id":"resp_1"`), top(`"conversation":"c"`),
		top(`"container":"c"`), top(`"prompt":{"id":"p"}`), top(`"web_search_options":{}`), top(`"plugins":[{"id":"web"}]`),
		top(`"input":[{"role":"user","content":[{"type":"input_image","image_url":"http://x"}]}]`),
	} {
		err := read(body, ask.Responses, &strict)
		if r, ok := errors.AsType[*ask.Refusal](err); !ok || r.Status != 403 {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestWhatAgentsSendIsAllowedWhenStrict(t *testing.T) {
	for shape, bodies := range map[ask.Shape][]string{
		ask.Messages: {
			part(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`), part(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"ab//cd=="}}`),
			part(`{"type":"tool_use","id":"t","name":"fetch","input":{"url":"https://example.org"}}`), part(`{"type":"text","text":"see https://example.org"}`),
			part(`{"type":"document","source":{"type":"text","data":"Note: see //x"}}`),
			`{"model":"m","tools":[{"type":"bash_20250124","name":"bash"},{"name":"f","input_schema":{"properties":{"url":{"default":"https://x"}}}},{"type":"custom","name":"c"}]}`,
			// Claude Code
			`{"model":"m","messages":[],"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"Bash","description":"x","input_schema":{}},{"name":"D","description":"x","input_schema":{},"defer_loading":true}],
			"metadata":{"user_id":"{\"device_id\":\"x\"}"},"max_tokens":32000,"thinking":{"type":"adaptive","display":"omitted"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"output_config":{"effort":"high"},"stream":true}`,
			`{"model":"m","messages":[],"stop_sequences":["x"],"top_k":1,"top_p":0.5,"temperature":1,"tool_choice":{"type":"auto"},"output_format":{"type":"json_schema","schema":{}},"cache_control":{"type":"ephemeral"},"service_tier":"auto","speed":"standard"}`,
		},
		ask.Responses: {
			`{"model":"m","store":false,"background":false,"previous_response_id":null,"input":"hello","metadata":{"user_id":"u","project":"p"}}`,
			`{"model":"m","input":[{"type":"function_call","arguments":"{\"url\":\"http://x\"}","name":"f","call_id":"c"}],"service_tier":"auto","user":"x"}`,
			// Codex
			`{"model":"m","stream":true,"input":[],"tools":[{"type":"function","name":"f","description":"x","strict":false,"parameters":{}},{"type":"namespace","name":"n","description":"x","tools":[{"type":"function","name":"f","parameters":{}}]}],
			"tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"summary":"auto"},"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"x-codex-turn-metadata":"{}"},"instructions":"x","text":{"verbosity":"low"}}`,
		},
		ask.Chat: {
			// opencode, OpenClaw and the SDK of OpenAI
			`{"model":"m","max_tokens":32000,"messages":[],"tools":[{"type":"function","function":{"name":"f","description":"x","parameters":{},"strict":true}}],"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}}`,
			`{"model":"m","messages":[],"store":false,"max_completion_tokens":9,"reasoning_effort":"high","prompt_cache_key":"k","prompt_cache_retention":"24h","enable_thinking":true,"chat_template_kwargs":{"enable_thinking":true},"tool_stream":true,"thinking":{"type":"enabled"},"reasoning":{"effort":"low"}}`,
			`{"model":"m","messages":[],"frequency_penalty":0,"logit_bias":{"1":2},"logprobs":true,"n":1,"presence_penalty":0,"response_format":{"type":"json_object"},"seed":1,"stop":["x"],"top_logprobs":2,"verbosity":"low","safety_identifier":"x","functions":[{"name":"f","parameters":{}}]}`,
		},
		ask.Embeddings: {`{"model":"m","input":["x"],"encoding_format":"float","dimensions":3,"user":"x"}`},
	} {
		for _, body := range bodies {
			if err := read(body, shape, &strict); err != nil {
				t.Errorf("%s: %v", body, err)
			}
		}
	}
}

// Members and tools that are not known yet are a line of the configuration; what
// steers the gateway is not.
func TestAllowedNamesArePassedOn(t *testing.T) {
	rules := strict
	rules.Allowed = ask.NewAllowed([]string{"next_member", "tools.next", "api_base"}, []string{"next_tool"})
	good := `{"model":"m","next_member":{"a":1},"tools":[{"type":"next_tool","next":1}]}`
	for _, shape := range []ask.Shape{ask.Chat, ask.Messages, ask.Responses} {
		if err := read(good, shape, &rules); err != nil {
			t.Error(err)
		}
	}
	for body, names := range map[string][]string{
		`{"model":"m","api_base":"x"}`:                     {"api_base"},
		`{"model":"m","other":1}`:                          {"other", "llm.allowMembers"},
		`{"model":"m","next_member":{"url":"https://x"}}`:  {"url"},
		`{"model":"m","tools":[{"name":"f","other":1}]}`:   {"tools.other", "llm.allowMembers"},
		`{"model":"m","tools":[{"type":"other"}]}`:         {"other", "llm.allowTools"},
		`{"model":"m","web_search_options":{}}`:            {"web_search_options", "bodyPolicy"},
		`{"model":"m","Next_Member":1}`:                    {"Next_Member"},
		`{"model":"m","tools":[{"type":"bash_evil"}]}`:     {"bash_evil"},
		`{"model":"m","tools":[{"type":"bash_2025012"}]}`:  {"bash_2025012"},
		`{"model":"m","tools":[{"Type":"function"}]}`:      {"tools.Type"},
		`{"model":"m","messages":[{"tools":[{"x":1}]}]}`:   {"tools.x"},
		`{"model":"m","tool_choice":{"tools":[{"x":1}]}}`:  {"tools.x"},
		`{"model":"m","functions":[{"googleSearch":{}}]}`:  {"googleSearch"},
		`{"model":"m","tools":{"type":"function"}}`:        {"tools"},
		`{"model":"m","tools":[[{"type":"function"}]]}`:    {"tools"},
		`{"model":"m","tools":["function"]}`:               {"tools"},
		`{"model":"m","metadata":"{\"user_id\":\"x\"}"}`:   {"metadata"},
		`{"model":"m","metadata":{"trace_user_id":"x"}}`:   {"trace_user_id"},
		`{"model":"m","metadata":{"User_ID":"victim"}}`:    {"user_id"},
		`{"model":"m","user":{"id":"victim"}}`:             {"user"},
		`{"model":"m","metadata":{"user_id":["victim"]}}`:  {"user_id"},
		`{"model":"m","metadata":{"session_id":"theirs"}}`: {"session_id"},
	} {
		err := read(body, ask.Chat, &rules)
		for _, name := range names {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v does not name %s", body, err, name)
			}
		}
	}
}

// Who a request says is calling becomes what the host says.
func TestIdentityIsReplaced(t *testing.T) {
	in := `{"metadata":{"a":1,"user_id":"victim"},"model":"m","stream":true,"user" : "vic\"tim","safety_identifier":"victim","messages":[]}`
	want := `{"stream_options":{"include_usage":true},"metadata":{"a":1,"user_id":"ours"},"model":"m","stream":true,"user" : "ours","safety_identifier":"ours","messages":[]}`
	var a ask.Ask
	if err := ask.NewReader().Read(&a, []byte(in), ask.Chat, &strict); err != nil {
		t.Fatal(err)
	}
	a.Identify("ours")
	if got := string(a.Append(nil, []byte(in))); got != want {
		t.Errorf("got %s", got)
	}
}

func TestPicturesAreNotCountedByTheirSize(t *testing.T) {
	body := part(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 3<<20) + `"}}`)
	var a ask.Ask
	if err := ask.NewReader().Read(&a, []byte(body), ask.Chat, &strict); err != nil || a.InputTokens > 5000 || a.InputTokens < 1000 {
		t.Fatal(a.InputTokens, err)
	}
}

func TestReadingAllocatesLittle(t *testing.T) {
	body := []byte(`{"model":"gpt","stream":true,"temperature":0.5,"messages":[{"role":"user","content":[{"type":"text","text":"hello"}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`)
	r := ask.NewReader()
	var a ask.Ask
	if n := testing.AllocsPerRun(100, func() {
		if err := r.Read(&a, body, ask.Chat, &strict); err != nil {
			t.Fatal(err)
		}
	}); n > 4 {
		t.Errorf("%.0f allocations", n)
	}
}
