package proxy_test

import (
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy"
	"github.com/atoll-run/atoll/internal/model/proxy/ask"
)

// asking are the paths where models are asked.
var asking = []string{chatPath, "/v1/messages", "/v1/responses", "/v1/responses/compact", "/v1/messages/count_tokens"}

func TestAttack23_ProviderToolsWithoutAType(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	var bodies []string
	for _, tool := range []string{
		`{"urlContext":{}}`, `{"url_context":{}}`, `{"googleSearch":{}}`, `{"google_search":{}}`, `{"codeExecution":{}}`, `{"googleMaps":{}}`, `{"google_maps":{}}`, `{"computerUse":{}}`,
		`{"name":"f","googleSearch":{}}`, `{"type":"function","function":{"name":"f"},"urlContext":{}}`, `{"type":null,"url_context":{}}`, `{"Type":"web_search"}`, `{"type":"bash_code_execution"}`,
		`[{"type":"web_search"}]`, `"web_search"`,
	} {
		bodies = append(bodies, `{"model":"good","tools":[`+tool+`]}`, `{"model":"good","functions":[`+tool+`]}`, `{"model":"good","input":[{"type":"x","tools":[`+tool+`]}]}`)
	}
	bodies = append(bodies, `{"model":"good","tools":{"type":"web_search"}}`, `{"model":"good","tools":{"googleSearch":{}}}`, `{"model":"good","tools":"web_search"}`)
	for _, path := range asking {
		refused(t, p, m, path, bodies...)
	}
	p.post(chatPath, `{"model":"good","messages":[],"tools":[{"type":"function","function":{"name":"f","parameters":{"googleSearch":{}}}}]}`).want(t, 200)
}

func TestAttack24_UnknownMembers(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	var bodies []string
	for _, member := range []string{
		`"search_parameters":{"mode":"on"}`, `"enable_search":true`, `"cache_key":"x"`, `"allowed_openai_params":["x"]`, `"web_search_options":{}`, `"next_release":1`, `"input":[{"type":"item_reference","id":"msg_1"}]`, `"messages":[{"type":"item_reference","id":"msg_1"}]`, `"audio":{}`, `"modalities":["audio"]`,
	} {
		bodies = append(bodies, `{"model":"good",`+member+`}`)
	}
	for _, path := range append(asking, "/v1/embeddings") {
		refused(t, p, m, path, bodies...)
	}
	refused(t, p, m, "/v1/responses", `{"model":"good","input":[{"id":"msg_1"}]}`, `{"model":"good","input":[{"type":null,"id":"msg_1"}]}`)
	p.post(chatPath, bodies[5]).want(t, 403, "next_release", "llm.allowMembers")
	allowed := newProxy(t, m.URL, func(o *proxy.Options) { o.Allowed = ask.NewAllowed([]string{"next_release"}, nil) }).listen(terms())
	allowed.post(chatPath, bodies[5]).want(t, 200)
	open := terms()
	open.BodyPolicy = proxy.OpenPolicy
	p.listen(open).post(chatPath, bodies[0]).want(t, 200)
	p.post(chatPath, bodies[2]).want(t, 403, "cache_key", "never")
}

func TestAttack25_SeveralModelsInOneName(t *testing.T) {
	m := newModel(t, chat(1))
	own := terms()
	own.Models = []string{"good*", "cheap-*"}
	p := newProxy(t, m.URL, nil).listen(own)
	for _, path := range append(asking, "/v1/embeddings") {
		refused(t, p, m, path, `{"model":"cheap-1,dear-9"}`, `{"model":"good,dear"}`, `{"model":"cheap-1;dear"}`, `{"model":"cheap-1|dear"}`, `{"model":"cheap-*"}`, `{"model":"cheap-1\u002cdear"}`,
			`{"model":"good:online"}`, `{"model":"good:ONLINE"}`, `{"model":"good","fastest_response":true}`, `{"model":"good","models":["dear"]}`, `{"model":"cheap-1?x"}`, `{"model":"cheap-1 "}`,
			`{"model":"cheap-1/../dear-9"}`, `{"model":"cheap-1/./dear"}`, `{"model":"cheap-1//dear"}`, `{"model":"cheap-1/"}`)
	}
}

func TestAttack26_DearerServiceThanReserved(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, nil).listen(terms())
	refused(t, p, m, "/v1/messages", `{"model":"good","speed":"fast"}`, `{"model":"good","speed":["fast"]}`, `{"model":"good","Speed":"fast"}`, `{"model":"good","service_tier":"priority"}`, `{"model":"good","inference_geo":"us"}`)
	refused(t, p, m, chatPath, `{"model":"good","speed":"fast"}`, `{"model":"good","service_tier":"scale"}`)
	refused(t, p, m, "/v1/responses", `{"model":"good","speed":"fast"}`, `{"model":"good","service_tier":"priority"}`)
	p.post("/v1/messages", `{"model":"good","speed":"standard","max_tokens":9,"messages":[]}`).want(t, 200)
}

// identities are members that LiteLLM reads as who pays.
const identities = `"user":"victim","safety_identifier":"victim","metadata":{"user_id":"victim"}`

func TestAttack27_BillingSpoofInTheBody(t *testing.T) {
	for _, account := range []string{"account-1", ""} {
		m := newModel(t, chat(1))
		own := terms()
		own.Account = account
		p := newProxy(t, m.URL, func(o *proxy.Options) { o.Installation = "HERE" }).listen(own)
		want := account
		if account == "" {
			want = "atoll-HERE-main"
		}
		for _, path := range asking {
			p.post(path, `{"model":"good",`+identities+`}`, "x-litellm-end-user-id: victim", "x-litellm-customer-id: victim").want(t, 200)
		}
		p.post("/v1/embeddings", `{"model":"good","input":"x","user":"victim"}`).want(t, 200)
		p.raw("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").want(t, 200)
		for _, q := range m.asked() {
			once(t, &q, "X-Litellm-End-User-Id", want)
			if q.Method == "POST" && (strings.Contains(q.Body, "victim") || !strings.Contains(q.Body, `"user":"`+want+`"`)) {
				t.Errorf("%s: %s", q.URI, q.Body)
			}
		}
	}
}

// A provider that is not ours gets neither the caller's identity nor what it says
// of itself.
func TestAttack27_IdentityTowardsStrangers(t *testing.T) {
	m := newModel(t, chat(1))
	p := newProxy(t, m.URL, func(o *proxy.Options) { o.Providers[0].Upstream.OmitIdentity = true }).listen(terms())
	p.post(chatPath, `{"model":"good",`+identities+`}`).want(t, 200)
	if q := m.only(t); strings.Contains(q.Body, "victim") || strings.Contains(q.Body, "account-1") || q.Header.Get("X-Litellm-End-User-Id") != "" {
		t.Error(q.Body, q.Header)
	}
}
