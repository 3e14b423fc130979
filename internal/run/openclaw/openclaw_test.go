package openclaw_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/run/openclaw"
)

var update = flag.Bool("update", false, "write the golden files anew")

const list = `
model_list:
  - model_name: gemini-2.5-flash
    litellm_params: {model: openrouter/google/gemini-2.5-flash, api_key: sk-secret}
    model_info: {max_input_tokens: 1000000, max_output_tokens: 65536, supports_vision: true}
    # a second deployment of the same
  - model_name: gemini-2.5-flash
    model_info: {max_input_tokens: 1000000, max_output_tokens: 65536, supports_vision: true}
  - model_name: small
litellm_settings: {drop_params: true}
`

func TestGolden(t *testing.T) {
	models, err := openclaw.FromYAML([]byte(list))
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]openclaw.Options{
		"ephemeral-list": {Mode: openclaw.Ephemeral}, "ephemeral-entries": {Mode: openclaw.Ephemeral, Agents: openclaw.Entries},
		"gateway-list": {Mode: openclaw.Gateway, Agents: openclaw.List}, "gateway-entries": {Mode: openclaw.Gateway, Agents: openclaw.Entries},
		"gateway-slots": {Mode: openclaw.Gateway, Agents: openclaw.Entries, Slots: 2, Headers: true, BaseURL: "http://127.0.0.1:8080"},
	} {
		o.Model, o.Models = "gemini-2.5-flash", models
		got, err := openclaw.Config(o)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(golden, append(got, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.TrimSpace(string(want)), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if strings.Contains(string(got), "sk-secret") {
			t.Errorf("%s: a key of the model list is in it", name)
		}
	}
}

func TestUnknownModel(t *testing.T) {
	if _, err := openclaw.Config(openclaw.Options{Mode: openclaw.Ephemeral, Model: "x"}); err == nil {
		t.Error("a model that nobody serves was taken")
	}
}

func TestCatalogues(t *testing.T) {
	fromList, err := openclaw.FromList([]byte(`{"object":"list","data":[{"id":"a/b-c"},{"id":"d"},{"id":"d"}]}`))
	if err != nil || len(fromList) != 2 || fromList[0].Name != "A B C" {
		t.Errorf("%+v, %v", fromList, err)
	}
	if text, err := json.Marshal(fromList[1]); err != nil || !strings.Contains(string(text), `"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}`) {
		t.Errorf("%s, %v", text, err)
	}
	for name, text := range map[string]string{
		"empty": "model_list: []", "pattern": "model_list: [{model_name: 'openai/*'}]", "strange": "model_list: [{model_name: \"a\\nb\"}]",
		"no yaml": "model_list: [", "another shape": "model_list: 5", "large": strings.Repeat("#", openclaw.MaxCatalogue+1),
		"nameless": "model_list: [" + strings.Repeat("{},", 10) + "]", "too many": "model_list: [" + strings.Repeat("{model_name: a},", openclaw.MaxEntries+1) + "]",
		"two that differ": "model_list: [{model_name: a}, {model_name: a, model_info: {max_tokens: 5}}]", "a key twice": "model_list: [{model_name: a, model_name: b}]",
	} {
		if models, err := openclaw.FromYAML([]byte(text)); err == nil {
			t.Errorf("%s: %+v was taken", name, models)
		}
	}
	for _, text := range []string{"", "[]", `{"data":[{"id":"` + strings.Repeat("x", 300) + `"}]}`, strings.Repeat(" ", openclaw.MaxCatalogue+1)} {
		if _, err := openclaw.FromList([]byte(text)); err == nil {
			t.Errorf("%.40q was taken", text)
		}
	}
}

func TestManyModelsAreRefused(t *testing.T) {
	var b strings.Builder
	for i := range openclaw.MaxModels + 1 {
		fmt.Fprintf(&b, "- {model_name: m%d}\n", i)
	}
	if _, err := openclaw.FromYAML([]byte("model_list:\n" + b.String())); err == nil || !strings.Contains(err.Error(), "1001 models are more than 1000") {
		t.Errorf("error %v", err)
	}
}

// Of thousands of wrong lines ten are reported.
func TestProblemsAreBounded(t *testing.T) {
	_, err := openclaw.FromYAML([]byte("model_list: [" + strings.Repeat("{model_name: '?'},", 5000) + "]"))
	if err == nil || strings.Count(err.Error(), "\n") != 10 || !strings.Contains(err.Error(), "and 4990 more") {
		t.Errorf("error %v", err)
	}
}

func TestCatalogueIsReadBack(t *testing.T) {
	before, err := openclaw.FromList([]byte(`{"data":[{"id":"a"},{"id":"b"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := openclaw.Catalogue(openclaw.Gateway, before)
	if err != nil {
		t.Fatal(err)
	}
	after, err := openclaw.ReadCatalogue(text)
	if err != nil || !cmp.Equal(before, after) {
		t.Errorf("%+v, %v", after, err)
	}
	after[0].MaxTokens++
	after[1].ID = "c"
	want := openclaw.Change{Added: []string{"c"}, Changed: []string{"a"}, Removed: []string{"b"}}
	if diff := cmp.Diff(want, openclaw.Compare(before, after)); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "[]", `{"modles":{}}`, `{"models":{"mode":"replace","providers":{"cogni":{"models":[{"id":"a b"}]}}}}`, strings.Repeat(" ", openclaw.MaxCatalogue+1)} {
		if list, err := openclaw.ReadCatalogue([]byte(text)); err == nil {
			t.Errorf("%.40q was read: %+v", text, list)
		}
	}
}

// A document that refers to itself many times over must not fill the memory.
func TestYAMLBomb(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'k'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 10) + "]\n"
	}
	if _, err := openclaw.FromYAML([]byte(bomb + "model_list: *k\n")); err == nil {
		t.Error("the bomb was taken")
	}
}
