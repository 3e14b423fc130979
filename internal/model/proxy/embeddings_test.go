package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/model/grant"
)

const vectorsPath = "/v1/embeddings"

// vectors answers as an embeddings API does, with this usage.
func vectors(usage string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"object":"list","model":"good-1","data":[{"object":"embedding","index":0,"embedding":[0.5,-0.25]}]%s}`, usage)
	}
}

func TestVectorsAreBroughtCountedAndRecorded(t *testing.T) {
	m := newModel(t, vectors(`,"usage":{"prompt_tokens":7,"total_tokens":7}`))
	p := newProxy(t, m.URL, nil).listen(terms())
	body := `{"model":"good","input":["a text","another"],"encoding_format":"float","dimensions":2,"user":"u"}`
	p.post(vectorsPath, body).want(t, 200, `"embedding":[0.5,-0.25]`)
	p.post("/embeddings", `{"model":"good","input":"one"}`).want(t, 200, `"embedding"`)
	asks := m.asked()
	if len(asks) != 2 || asks[0].URI != vectorsPath || asks[1].URI != vectorsPath || asks[0].Body != strings.Replace(body, `"u"`, `"account-1"`, 1) {
		t.Errorf("the upstream got %+v", asks)
	}
	if c := p.spent("run-1"); c.Tokens.Input != 14 || c.Tokens.Output != 0 || c.MicroUSD != 14 || c.Estimated != 0 {
		t.Errorf("charged %+v", c)
	}
	if r := p.records(); len(r) != 2 || r[0]["dialect"] != "embeddings" || r[0]["costMicroUSD"] != 7.0 {
		t.Errorf("recorded %v", r)
	}
}

// What the upstream does not count, or counts impossibly, is estimated from
// the size of the texts.
func TestVectorsWithoutACountAreEstimated(t *testing.T) {
	m := newModel(t, vectors(`,"usage":{"prompt_tokens":-1}`))
	p := newProxy(t, m.URL, nil).listen(terms())
	p.post(vectorsPath, `{"model":"good","input":"`+strings.Repeat("word ", 600)+`"}`).want(t, 200)
	if c := p.spent("run-1"); c.Estimated != 1 || c.Tokens.Input < 900 || c.Tokens.Output != 0 {
		t.Errorf("charged %+v", c)
	}
}

func TestVectorsThatAreRefused(t *testing.T) {
	m := newModel(t, vectors(""))
	p := newProxy(t, m.URL, nil).listen(terms())
	for body, status := range map[string]int{
		`{"model":"good"}`:                                                   400,
		`{"model":"good","input":[]}`:                                        400,
		`{"model":"good","input":null}`:                                      400,
		`{"model":"good","input":[1,2,3]}`:                                   400,
		`{"model":"good","input":[[1,2],[3]]}`:                               400,
		`{"model":"good","input":{"url":"http://x"}}`:                        400,
		`{"model":"good","input":["a",{"image_url":"x"}]}`:                   400,
		`{"model":"good","input":"a","encoding_format":1}`:                   400,
		`{"model":"good","input":"a","dimensions":0}`:                        400,
		`{"model":"good","input":"a","Input":"b"}`:                           400,
		`{"model":"good","input":"a","api_base":"x"}`:                        403,
		`{"model":"good","input":"a","stream":true}`:                         403,
		`{"model":"good","input":"a","tools":[]}`:                            403,
		`{"model":"good","input":"a","metadata":{}}`:                         403,
		`{"model":"other","input":"a"}`:                                      403,
		`{"input":"a"}`:                                                      400,
		`{"model":"good","input":[` + strings.Repeat(`"a",`, 2048) + `"a"]}`: 403,
	} {
		p.post(vectorsPath, body).want(t, status)
	}
	p.raw(request("GET", vectorsPath, "")).want(t, 404)
	p.post("/v1/embeddings/", `{"model":"good","input":"a"}`).want(t, 404)
	if asks := m.asked(); len(asks) != 0 {
		t.Errorf("the upstream was asked %+v", asks)
	}
}

func TestVectorsBeyondTheBudget(t *testing.T) {
	m := newModel(t, vectors(`,"usage":{"prompt_tokens":900}`))
	poor := terms()
	poor.Budget = grant.Budget{MicroUSD: 1000}
	p := newProxy(t, m.URL, nil).listen(poor)
	body := `{"model":"good","input":"` + strings.Repeat("word ", 500) + `"}`
	p.post(vectorsPath, body).want(t, 200)
	p.post(vectorsPath, body).want(t, 402, "budget_exceeded")
	if c := p.spent("run-1"); c.MicroUSD != 900 || c.Calls != 1 {
		t.Errorf("charged %+v", c)
	}
}
