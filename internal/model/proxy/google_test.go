package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/grant"
	"github.com/atoll-run/atoll/internal/model/proxy"
)

const (
	generatePath = "/v1beta/models/good:generateContent"
	streamPath   = "/v1beta/models/good:streamGenerateContent"
	helloGoogle  = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
)

// generate answers as Google's server does: n words, each an event with the count so far.
func generate(words int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1beta/openai/models"):
			fmt.Fprint(w, `{"object":"list","data":[{"id":"models/good"},{"id":"models/other"}]}`)
		case strings.HasPrefix(r.URL.Path, "/v1beta/openai/"):
			r.URL.Path = "/v1/chat/completions"
			chat(words)(w, r)
		case strings.HasSuffix(r.URL.Path, ":countTokens"):
			fmt.Fprint(w, `{"totalTokens":11}`)
		case r.URL.RawQuery != "alt=sse":
			fmt.Fprintf(w, `{"candidates":[],"usageMetadata":{"promptTokenCount":11,"candidatesTokenCount":%d,"thoughtsTokenCount":3,"cachedContentTokenCount":4},"modelVersion":"good-1"}`, words)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range words {
				fmt.Fprintf(w, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"w%d \"}]}}],\"usageMetadata\":{\"promptTokenCount\":11,\"candidatesTokenCount\":%d,\"thoughtsTokenCount\":3},\"modelVersion\":\"good-1\"}\r\n\r\n", i, i+1)
				w.(http.Flusher).Flush()
			}
		}
	}
}

// asGoogle makes the only provider Google's server.
func asGoogle(o *proxy.Options) {
	o.Providers[0].Upstream.Header, o.Providers[0].Upstream.OmitIdentity = "x-goog-api-key", true
}

// TestGoogleIsServed: whole answers, streams and counts; the key is the proxy's, in
// Google's header and nowhere else, and what was used is charged and recorded.
func TestGoogleIsServed(t *testing.T) {
	m := newModel(t, generate(7))
	p := newProxy(t, m.URL, asGoogle).listen(terms())
	stolen := []string{"x-goog-api-key: STOLEN", "Authorization: Bearer STOLEN", "x-goog-user-project: STOLEN", "X-Goog-FieldMask: candidates", "x-http-method-override: GET"}
	p.post(generatePath+"?key=STOLEN&fields=candidates&alt=proto", helloGoogle, stolen...).want(t, 200, "usageMetadata")
	p.post(streamPath+"?key=STOLEN&alt=sse&%24fields=candidates", helloGoogle, stolen...).want(t, 200, "w0", "w6")
	p.post("/v1beta/models/good:countTokens", helloGoogle, stolen...).want(t, 200, "totalTokens")
	if c := p.spent("run-1"); c.Calls != 2 || c.Tokens.Input != 11+7 || c.Tokens.CachedInput != 4 || c.Tokens.Output != 20 || c.Tokens.Reasoning != 6 || c.Estimated != 0 {
		t.Errorf("charged %+v", c)
	}
	for i, q := range m.asked() {
		once(t, &q, "X-Goog-Api-Key", theKey)
		if want := []string{generatePath, streamPath + "?alt=sse", "/v1beta/models/good:countTokens"}[i]; q.URI != want {
			t.Errorf("%s was asked, not %s", q.URI, want)
		}
		if all := fmt.Sprint(q); strings.Contains(all, "STOLEN") || strings.Contains(all, "Fieldmask") || q.Header.Get("Authorization") != "" || q.Header.Get("X-Http-Method-Override") != "" || strings.Contains(all, "account-1") {
			t.Errorf("the upstream saw %s", all)
		}
	}
	for _, r := range p.records() {
		if r["dialect"] != "gemini" || r["modelAsked"] != "good" {
			t.Errorf("record %v", r)
		}
	}
}

// TestGoogleSpeaksOpenAIToo: Chat Completions and the list of models go where Google has
// them; what Google does not have is said before it is asked.
func TestGoogleSpeaksOpenAIToo(t *testing.T) {
	m := newModel(t, generate(2))
	p := newProxy(t, m.URL+"/v1beta", asGoogle).listen(terms())
	p.post(chatPath, hello).want(t, 200)
	p.raw("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").want(t, 200, `"id":"good"`)
	for i, q := range m.asked() {
		once(t, &q, "Authorization", "Bearer "+theKey)
		if want := []string{"/v1beta/openai/chat/completions", "/v1beta/openai/models"}[i]; q.URI != want {
			t.Errorf("%s was asked, not %s", q.URI, want)
		}
	}
	for _, path := range []string{"/v1/messages", "/v1/responses", "/v1/messages/count_tokens"} {
		p.post(path, `{"model":"good"}`).want(t, 404, "Chat Completions")
	}
	if n := len(m.asked()); n != 2 {
		t.Errorf("the upstream was asked %d times", n)
	}
}

// TestAttack28_ModelsInPaths: the model is exactly one segment of the path; the body
// names none, and nothing else of Google's API is served.
func TestAttack28_ModelsInPaths(t *testing.T) {
	m := newModel(t, generate(1))
	own := terms()
	own.Models = []string{"good*"}
	p := newProxy(t, m.URL, asGoogle).listen(own)
	p.post("/v1beta/models/dear:generateContent", helloGoogle).want(t, 403, "model_not_allowed", `"status":"PERMISSION_DENIED"`)
	for _, path := range []string{
		"models/good/../dear:generateContent", "models/good%2f..%2fdear:generateContent", "models/good%3agenerateContent", "models/go%6fd:generateContent", "models/..:generateContent", "models/.:generateContent",
		"models/good/:generateContent", "models//good:generateContent", "models/models/good:generateContent", "models/good:generateContent/", "models/good:generateContent:countTokens", "models/good:online:generateContent",
		"models/good;dear:generateContent", "models/good,dear:generateContent", "models/good*:generateContent", "models/:generateContent", "models/good", "models/good:", "models/good#:generateContent",
		"models/good:GenerateContent", "models/good:generatecontent", "models/good:embedContent", "models/good:batchEmbedContents", "models/good:batchGenerateContent", "models/good:asyncBatchEmbedContent",
		"models/good:predict", "models/good:predictLongRunning", "models/good:bidiGenerateContent", "models/good:generateAnswer", "models/good:countTextTokens", "models/" + strings.Repeat("g", 129) + ":generateContent",
		"tunedModels/good:generateContent", "dynamic/good:generateContent", "cachedContents", "cachedContents/x", "files", "files/x:download", "corpora", "fileSearchStores", "fileSearchStores/x:uploadToFileSearchStore",
		"batches", "auth_tokens", "interactions", "models", "openai/chat/completions", "projects/p/locations/l/publishers/google/models/good:generateContent",
	} {
		for _, method := range []string{"POST", "GET"} {
			if a := p.raw(request(method, "/v1beta/"+path, helloGoogle)); a.err != nil || a.StatusCode != 404 && a.StatusCode != 400 {
				t.Errorf("%s %s: %v %s", method, path, a.err, a.body)
			}
		}
	}
	for _, path := range []string{"/upload/v1beta/files", "/v1/models/good:generateContent", "/v1alpha/models/good:generateContent", "/models/good:generateContent", "/v1beta1/models/good:generateContent", "/v1beta/../v1beta/models/good:generateContent", "/batch"} {
		p.post(path, helloGoogle).want(t, 404)
	}
	p.raw(request("PUT", generatePath, helloGoogle)).want(t, 404)
	for _, query := range []string{"", "?alt=json", "?alt=%73se", "?ALT=sse", "?alt=sse;x", "?$alt=sse", "?alt=sse%26"} {
		p.post(streamPath+query, helloGoogle).want(t, 400, "alt=sse")
	}
	refused(t, p, m, generatePath, `{"model":"models/dear"}`, `{"contents":[],"model":"good"}`, `{"tools":[{"googleSearch":{}}]}`, `{"tools":[{"urlContext":{}}]}`, `{"tools":[{"codeExecution":{}}]}`,
		`{"cachedContent":"cachedContents/x"}`, `{"contents":[{"parts":[{"fileData":{"fileUri":"https://evil/x"}}]}]}`, `{"contents":[],"Contents":[]}`, `[]`, ``)
	refused(t, p, m, "/v1beta/models/good:countTokens", `{"generateContentRequest":{"model":"models/dear","contents":[]}}`)
}

// Google's dialect has its own errors: of budgets, before an answer and in the middle of
// one, and of a key that Google does not take.
func TestGoogleErrors(t *testing.T) {
	reply := generate(200)
	m := newModel(t, func(w http.ResponseWriter, r *http.Request) { reply(w, r) })
	limited := terms()
	limited.Budget = grant.Budget{MicroUSD: 700} // about seventy tokens of output
	p := newProxy(t, m.URL, asGoogle)
	a := p.listen(limited).post(streamPath+"?alt=sse", helloGoogle)
	a.want(t, 200, "\r\n\r\n"+`{"error":{"code":402,`, "\n\n"+`data: {"error":{"code":402,`, `"reason":"budget_exceeded"`)
	p.post(generatePath, helloGoogle).want(t, 402, `{"error":{"code":402,`, `"status":"PERMISSION_DENIED"`)
	reply = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		fmt.Fprint(w, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`)
	}
	other := terms()
	other.Run = "run-2"
	p.listen(other).post(generatePath, helloGoogle).want(t, 502, "does not take the proxy's key")
}
