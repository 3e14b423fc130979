package app_test

import (
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/audit"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

// A list of names alone takes nothing away that was known of models.
func TestSyncingNamesKeepsWhatIsKnown(t *testing.T) {
	a, _ := openMoney(t, "")
	yaml := "model_list:\n- {model_name: m, model_info: {max_input_tokens: 1048576, max_output_tokens: 65536, supports_vision: true}}\n- {model_name: dear, model_info: {max_input_tokens: 1000}}\n"
	if _, err := a.Models.SyncModels(t.Context(), service.ModelSync{Mode: openclaw.Ephemeral, List: strings.NewReader(yaml)}); err != nil {
		t.Fatal(err)
	}
	synced, err := a.Models.SyncModels(t.Context(), service.ModelSync{Mode: openclaw.Ephemeral})
	if err != nil || len(synced.Change.Changed) != 0 {
		t.Errorf("%+v, %v", synced, err)
	}
	models, err := a.Models.ModelCatalogue()
	if err != nil || len(models) != 2 || models[0].ContextWindow != 1000 || models[1].ContextWindow != 1048576 || models[1].MaxTokens != 65536 || len(models[1].Input) != 2 {
		t.Errorf("%+v, %v", models, err)
	}
}

// What LiteLLM says of a model's size goes before what was known.
func TestModelInfoGoesBeforeWhatWasKnown(t *testing.T) {
	before, err := openclaw.FromYAML([]byte("model_list:\n- {model_name: a, model_info: {max_input_tokens: 7}}\n- {model_name: b, model_info: {max_input_tokens: 8}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := openclaw.FromList([]byte(`{"data":[{"id":"a"},{"id":"b"},{"id":"c"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := openclaw.Known(list, []byte(`{"data":[{"model_name":"a","model_info":{"max_input_tokens":100.0,"max_output_tokens":10}},{"model_name":"a","model_info":{"max_input_tokens":90,"max_output_tokens":20}},
		{"model_name":"b","model_info":{"max_input_tokens":null}},{"model_name":"c","model_info":{"max_input_tokens":-5}}]}`), before)
	if got[0].ContextWindow != 90 || got[0].MaxTokens != 10 || got[1].ContextWindow != 8 || got[2].ContextWindow != 200_000 {
		t.Errorf("%+v", got)
	}
	if got := openclaw.Known(list, []byte("no JSON"), before); got[0].ContextWindow != 7 {
		t.Errorf("%+v", got)
	}
}

// Records of delivered commits are no requests to models.
func TestOnlyRequestsToModelsAreCounted(t *testing.T) {
	a, _ := openMoney(t, "")
	log, err := a.Models.AuditLog()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []audit.Event{&audit.GitEvent{Time: time.Now(), Step: "pushed"}, &audit.ModelRequest{Time: time.Now(), Dialect: "chat", Status: 200}} {
		if err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	var text strings.Builder
	if _, err := a.Models.Metrics().WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), `atoll_llm_requests_total{dialect="chat",status="200"} 1`) || strings.Contains(text.String(), `dialect=""`) {
		t.Error(text.String())
	}
}
