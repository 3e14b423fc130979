package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy"
)

// refused sends bodies that must not reach the upstream.
func refused(t *testing.T, p *proxyKit, m *model, path string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		a := p.post(path, body)
		if a.err != nil || a.StatusCode != 400 && a.StatusCode != 403 {
			t.Errorf("%.100s: %v %.200s", body, a.err, a.body)
			continue
		}
		if a.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%.100s: clients would try again", body)
		}
	}
	if n := len(m.asked()); n != 0 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

func TestAttack06_ModelAllowlistByParserDifferential(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	refused(t, p, m, chatPath,
		`{"model":"dear"}`, `{"model":"good","MODEL":"dear"}`, `{"MODEL":"dear","model":"good"}`, `{"model":"dear","model":"good"}`, `{"model":"good","model":"dear"}`,
		`{"model":"good","mod\u0065l":"dear"}`, `{"model":"good","\u006dodel":"dear"}`, `{"model":"good"}{"model":"dear"}`, `{"model":"good"} x`, `{"model":"good","x":NaN}`,
		`{"model":"good","x":`+strings.Repeat("[", 10000), `{"model":["good","dear"]}`, `{"model":"good","models":["dear"]}`, "\ufeff"+`{"model":"good"}`,
		"{\"model\":\"good\",\"x\":\"\xff\"}", `{"model":"good`+"\x00"+`"}`, `{"model":"good/../dear"}`, `{"model":"GOOD"}`, `{"model":" good"}`, `[{"model":"good"}]`, `"good"`, ``,
		string([]byte{0xff, 0xfe, '{', 0, '}', 0}), `{"model":"`+strings.Repeat("g", 1<<20)+`"}`)
}

func TestAttack07_MeteringEvasionByEncoding(t *testing.T) {
	m := newModel(t, chat(7))
	p := newProxy(t, m.URL, nil).listen(terms())
	p.post(chatPath, helloStream, "Accept-Encoding: gzip, br, zstd").want(t, 200, "w6")
	q := m.only(t)
	once(t, &q, "Accept-Encoding", "identity")
	if c := p.spent("run-1"); c.Tokens.Output != 7 {
		t.Errorf("charged %+v", c)
	}
	for _, encoding := range []string{"gzip", "zstd", "br", "identity, gzip", "x"} {
		p.post(chatPath, hello, "Content-Encoding: "+encoding).want(t, 415)
	}
	if len(m.asked()) != 1 {
		t.Error("an encoded body went on")
	}
}

func TestAttack09_MeteringEvasionByShape(t *testing.T) {
	m := newModel(t, chat(3))
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.MaxOutput = 1000 }).listen(terms())
	refused(t, p, m, chatPath, `{"model":"good","n":128}`, `{"model":"good","best_of":50}`, `{"model":"good","service_tier":"priority"}`,
		`{"model":"good","max_completion_tokens":1001}`, `{"model":"good","max_tokens":1,"max_completion_tokens":99999999}`, `{"model":"good","stream_options":{"include_usage":"no"}}`,
		`{"model":"good","Stream":true}`, `{"model":"good","STREAM_OPTIONS":{}}`)
	p.post(chatPath, `{"model":"good","stream":true,"stream_options":{"include_usage":false},"messages":[]}`).want(t, 200)
	if q := m.only(t); !strings.Contains(q.Body, `"include_usage":true`) {
		t.Error(q.Body)
	}
	if c := p.spent("run-1"); c.Tokens.Output != 3 || c.Estimated != 0 {
		t.Errorf("charged %+v", c)
	}
}

func TestAttack11_ProviderSideEgress(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	part := func(x string) string {
		return `{"model":"good","max_tokens":5,"messages":[{"role":"user","content":[` + x + `]}]}`
	}
	bodies := []string{
		part(`{"type":"image_url","image_url":{"url":"https://evil/x.png"}}`), part(`{"type":"document","source":{"type":"url","url":"http://evil"}}`),
		part(`{"type":"input_image","image_url":"https://evil"}`), part(`{"type":"input_file","file_url":"https://evil"}`), part(`{"type":"input_file","file_id":"file-1"}`),
	}
	for _, tool := range []string{"mcp", "web_search", "web_search_preview", "web_search_20250305", "web_fetch_20250910", "code_interpreter", "computer_use_preview", "container", "file_search", "code_execution_20250522"} {
		bodies = append(bodies, fmt.Sprintf(`{"model":"good","tools":[{"type":%q,"server_url":"https://evil"}]}`, tool))
	}
	for _, member := range []string{`"mcp_servers":[{"url":"https://evil"}]`, `"background":true`, `"store":true`, `"previous_response_id":"resp_1"`, `"conversation":"c"`, `"container":"c"`} {
		bodies = append(bodies, `{"model":"good",`+member+`}`)
	}
	for _, path := range []string{chatPath, "/v1/messages", "/v1/responses"} {
		refused(t, p, m, path, bodies...)
	}
	p.post(chatPath, part(`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`)).want(t, 200)
	open := terms()
	open.BodyPolicy = proxy.OpenPolicy
	p.listen(open).post(chatPath, part(`{"type":"image_url","image_url":{"url":"https://fine/x.png"}}`)).want(t, 200)
}

func TestAttack12_ControlFieldsOfLiteLLM(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	var bodies []string
	for _, field := range []string{
		"api_base", "base_url", "api_key", "user_config", "model_list", "vertex_credentials", "aws_access_key_id", "azure_ad_token", "s3_endpoint_url", "sagemaker_base_url", "deployment_url",
		"input_cost_per_token", "output_cost_per_second", "mock_response", "mock_tool_calls", "callbacks", "service_callback", "logger_fn", "disable_global_guardrails", "max_agentic_loops",
		"tags", "litellm_metadata", "litellm_trace_id", "fallbacks", "num_retries", "timeout", "langfuse_host", "extra_body", "extra_headers", "guardrails", "API_Base",
	} {
		bodies = append(bodies, fmt.Sprintf(`{"model":"good",%q:"x"}`, field))
	}
	refused(t, p, m, chatPath, append(bodies, `{"model":"good","metadata":{"spend_logs_metadata":{"run_id":"victim"}}}`, `{"model":"good","metadata":{"user_api_key_alias":"x"}}`)...)
}

func TestAttack17_AuditInjection(t *testing.T) {
	m := newModel(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"model":"m\n\u001b[31mFORGED`+strings.Repeat("x", 300)+`","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
	})
	p := newProxy(t, m.URL, nil).listen(terms())
	p.post(chatPath+"?q=QUERYSECRET", `{"model":"good","messages":[{"role":"user","content":"PROMPTSECRET"}]}`, "User-Agent: x\x1b[2J").want(t, 400)
	p.post(chatPath+"?q=QUERYSECRET", `{"model":"good","messages":[{"role":"user","content":"PROMPTSECRET"}]}`, "Authorization: Bearer CALLERSECRET").want(t, 200)
	for _, model := range []string{`a\nb`, `a\u001b[31m`, strings.Repeat("m", 1<<20), `<script>`} {
		p.post(chatPath, `{"model":"`+model+`"}`)
	}
	records := p.records()
	if len(records) != 6 {
		t.Errorf("%d records", len(records))
	}
	text := p.auditText()
	for _, bad := range []string{"\x1b", "QUERYSECRET", "PROMPTSECRET", "CALLERSECRET", strings.Repeat("m", 1000), theKey} {
		if strings.Contains(text, bad) {
			t.Errorf("%.20q is in the records", bad)
		}
	}
}
