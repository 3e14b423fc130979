package app_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

// The models are those that LiteLLM has, asked with the key that the host keeps.
func TestModelsComeFromLiteLLM(t *testing.T) {
	a, _ := openMoney(t, "")
	if _, err := a.Models.ModelCatalogue(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before anything: %v", err)
	}
	synced, err := a.Models.SyncModels(t.Context(), service.ModelSync{Mode: openclaw.Ephemeral})
	if err != nil {
		t.Fatal(err)
	}
	if !synced.Written || synced.Count != 2 || len(synced.Change.Added) != 2 || !strings.HasSuffix(synced.Source, "/v1/models") {
		t.Errorf("%+v", synced)
	}
	models, err := a.Models.ModelCatalogue()
	var ids []string
	for i := range models {
		ids = append(ids, models[i].ID)
	}
	if err != nil || !cmp.Equal([]string{"dear", "m"}, ids) {
		t.Errorf("kept: %v, %v", ids, err)
	}
	if strings.Contains(string(synced.Part), masterKey) {
		t.Error("the key is in the catalogue")
	}
	again, err := a.Models.SyncModels(t.Context(), service.ModelSync{Mode: openclaw.Ephemeral})
	if want := (openclaw.Change{Added: []string{}, Changed: []string{}, Removed: []string{}}); err != nil || !cmp.Equal(want, again.Change) {
		t.Errorf("the second time: %+v, %v", again.Change, err)
	}
}

func TestALiteLLMThatIsGoneChangesNothing(t *testing.T) {
	a, upstream := openMoney(t, "")
	if _, err := a.Models.SyncModels(t.Context(), service.ModelSync{Mode: openclaw.Ephemeral}); err != nil {
		t.Fatal(err)
	}
	if err := upstream.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Models.SyncModels(t.Context(), service.ModelSync{Mode: openclaw.Ephemeral}); err == nil || strings.Contains(err.Error(), masterKey) {
		t.Errorf("error %v", err)
	}
	if models, err := a.Models.ModelCatalogue(); err != nil || len(models) != 2 {
		t.Errorf("%d models, %v", len(models), err)
	}
}
