package ask_test

import (
	"errors"
	"testing"

	"github.com/atoll-run/atoll/internal/model/proxy/ask"
)

// google are the rules of a request whose path names a model.
func google(strict bool) *ask.Rules {
	return &ask.Rules{Strict: strict, MaxN: 4, MaxOutput: 100000, Model: "gemini-x", Stream: true}
}

const contents = `"contents":[{"role":"user","parts":[{"text":"see https://example.org"}]}]`

func TestWhatGoogleIsAskedFor(t *testing.T) {
	// what Gemini CLI sends
	body := `{` + contents + `,"systemInstruction":{"role":"user","parts":[{"text":"x"}]},"safetySettings":[],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"cachedContent":null,
		"tools":[{"functionDeclarations":[{"name":"f","description":"x","parametersJsonSchema":{"type":"object","properties":{"url":{"type":"string","default":"https://x"}}},"response":{"uri":"https://x"}}]}],
		"generationConfig":{"temperature":1,"topP":0.95,"topK":64,"candidateCount":2,"maxOutputTokens":9,"responseModalities":["TEXT"],"thinkingConfig":{"includeThoughts":true,"thinkingBudget":8192},"responseMimeType":"application/json","responseJsonSchema":{"url":"https://x"}}}`
	var a ask.Ask
	if err := ask.NewReader().Read(&a, []byte(body), ask.Generate, google(true)); err != nil || string(a.Model) != "gemini-x" || !a.Stream || a.N != 2 || a.MaxOutput != 9 || len(a.Edits()) != 0 {
		t.Fatalf("%+v %v", a, err)
	}
	for _, body := range []string{
		`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"url":"https://x"}},"thoughtSignature":"QUJD"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"url":"https://x","file_id":"f"}}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"ab//cd=="}}]}]}`,
	} {
		if err := read(body, ask.Generate, google(true)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	if err := read(`{`+contents+`}`, ask.GenerateCount, google(true)); err != nil {
		t.Error(err)
	}
}

func TestWhatGoogleIsNeverAsked(t *testing.T) {
	for body, status := range map[string]int{
		`{"model":"models/dear"}`: 403, `{"Model":"dear"}`: 403, `{"contents":[],"Contents":[]}`: 400, `{"system_instruction":{}}`: 403, `{"generation_config":{}}`: 403, `{"user":"x"}`: 403,
		`{"labels":{"a":"b"}}`: 403, `{"api_key":"x"}`: 403, `{"metadata":{}}`: 403, `{"serviceTier":"priority"}`: 403, `{"generationConfig":[]}`: 400, `{"generationConfig":{"candidateCount":5}}`: 403,
		`{"generationConfig":{"candidateCount":0}}`: 400, `{"generationConfig":{"candidateCount":1,"candidate_count":9}}`: 403, `{"generationConfig":{"CandidateCount":9}}`: 403,
		`{"generationConfig":{"maxOutputTokens":100001}}`: 403, `{"generationConfig":{"maxOutputTokens":1,"max_output_tokens":99999999}}`: 403, `{"generationConfig":{"maxOutputTokens":"9"}}`: 400,
		`{"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}`: 403, `{"generationConfig":{"responseModalities":"IMAGE"}}`: 400, `{"generationConfig":{"speechConfig":{}}}`: 403,
		`{"generationConfig":{"modelConfig":{"featureSelectionPreference":1}}}`: 403, `{"generationConfig":{"routingConfig":{"manualMode":{"modelName":"dear"}}}}`: 403, `{"tools":{}}`: 400,
	} {
		refusal, ok := errors.AsType[*ask.Refusal](read(body, ask.Generate, google(false)))
		if !ok || refusal.Status != status {
			t.Errorf("%s: %v, want %d", body, refusal, status)
		}
	}
	for _, body := range []string{`{"generateContentRequest":{"model":"models/dear","contents":[]}}`, `{` + contents + `,"tools":[]}`, `{"model":"gemini-x"}`} {
		if err := read(body, ask.GenerateCount, google(false)); err == nil {
			t.Errorf("counting takes %s", body)
		}
	}
	if err := read(`{`+contents+`}`, ask.Generate, &ask.Rules{}); err == nil {
		t.Error("a request without a model is taken")
	}
	rules := google(true)
	rules.Allowed = ask.NewAllowed([]string{"model", "nextMember", "generationConfig.next", "tools.computerUse"}, nil)
	if err := read(`{`+contents+`,"nextMember":1,"generationConfig":{"next":1},"tools":[{"computerUse":{}}]}`, ask.Generate, rules); err != nil {
		t.Error(err)
	}
	if err := read(`{`+contents+`,"model":"dear"}`, ask.Generate, rules); err == nil {
		t.Error("a second model is taken because the configuration allows the member")
	}
}

// What the provider would fetch, keep or run is refused, unless the policy is open.
func TestWhatGoogleMayNotDoWhenStrict(t *testing.T) {
	part := func(p string) string { return `{"contents":[{"role":"user","parts":[` + p + `]}]}` }
	for _, body := range []string{
		part(`{"fileData":{"mimeType":"video/mp4","fileUri":"https://youtu.be/x"}}`), part(`{"file_data":{"file_uri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}`),
		part(`{"functionResponse":{"name":"f","response":{},"parts":[{"fileData":{"fileUri":"gs://b/x"}}]}}`), part(`{"inlineData":{"data":"https://x"}}`),
		`{"systemInstruction":{"parts":[{"fileData":{"fileUri":"https://x"}}]}}`, `{"cachedContent":"cachedContents/x"}`, `{"store":true}`,
		`{"tools":[{"googleSearch":{}}]}`, `{"tools":[{"google_search":{}}]}`, `{"tools":[{"urlContext":{}}]}`, `{"tools":[{"codeExecution":{}}]}`, `{"tools":[{"googleMaps":{}}]}`, `{"tools":[{"fileSearch":{}}]}`,
		`{"tools":[{"mcpServers":[{"streamableHttpTransport":{"url":"https://x"}}]}]}`, `{"tools":[{"googleSearchRetrieval":{}}]}`, `{"tools":[{"retrieval":{}}]}`, `{"tools":[{"functionDeclarations":[],"googleSearch":{}}]}`,
		`{"tools":[{"function_declarations":[]}]}`, `{"tools":[{"functionDeclarations":[{"name":"f","tools":[{"googleSearch":{}}]}]}]}`,
	} {
		refusal, ok := errors.AsType[*ask.Refusal](read(body, ask.Generate, google(true)))
		if !ok || refusal.Status != 403 {
			t.Errorf("%s: %v", body, refusal)
		}
		if err := read(body, ask.Generate, google(false)); err != nil {
			t.Errorf("%s under the open policy: %v", body, err)
		}
	}
}

// FuzzGoogle: whatever is accepted, the model is the path's, and no more answers and
// tokens are asked for than were read.
func FuzzGoogle(f *testing.F) {
	f.Add([]byte(`{"generationConfig":{"candidateCount":2,"maxOutputTokens":7},"tools":[{"functionDeclarations":[{"name":"f"}]}]}`))
	f.Add([]byte(`{"contents":[{"parts":[{"fileData":{"fileUri":"data:x"}}]}],"cachedContent":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, shape := range []ask.Shape{ask.Generate, ask.GenerateCount} {
			var a ask.Ask
			if ask.NewReader().Read(&a, body, shape, google(true)) != nil {
				continue
			}
			if string(a.Model) != "gemini-x" || a.N < 1 || a.N > 4 || a.MaxOutput > 100000 || len(a.Edits()) != 0 {
				t.Fatalf("%q: %+v", body, a)
			}
		}
	})
}
