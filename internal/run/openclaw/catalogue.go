package openclaw

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// modelsSection is the part of a configuration that names the models.
type modelsSection struct {
	Models models `json:"models"`
}

func modelsFor(m Mode, list []Model) models {
	return models{Mode: "replace", Providers: map[string]providerEntry{provider: {baseURL(m), placeholder, "openai-completions", list}}}
}

// Catalogue writes the part of a configuration that names the models, indented.
func Catalogue(m Mode, list []Model) ([]byte, error) {
	return json.Marshal(&modelsSection{modelsFor(m, list)}, jsontext.WithIndent("  "), json.Deterministic(true))
}

// ReadCatalogue reads what Catalogue wrote.
func ReadCatalogue(data []byte) ([]Model, error) {
	var p modelsSection
	if len(data) > MaxCatalogue {
		return nil, fmt.Errorf("%d bytes are more than %d", len(data), MaxCatalogue)
	}
	if err := json.Unmarshal(data, &p, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	list := p.Models.Providers[provider].Models
	for i := range list {
		if !plainID.MatchString(list[i].ID) {
			return nil, fmt.Errorf("models[%d]: %.60q is no model name", i, list[i].ID)
		}
	}
	return list, nil
}

// Change is how one catalogue differs from another, by the ids of models.
type Change struct {
	Added   []string `json:"added"`
	Changed []string `json:"changed"`
	Removed []string `json:"removed"`
}

// Compare says what became of a catalogue. Lists are never nil.
func Compare(before, after []Model) Change {
	c := Change{[]string{}, []string{}, []string{}}
	old := byID(before)
	for i := range after {
		was, there := old[after[i].ID]
		switch {
		case !there:
			c.Added = append(c.Added, after[i].ID)
		case !was.same(&after[i]):
			c.Changed = append(c.Changed, after[i].ID)
		}
	}
	now := byID(after)
	for i := range before {
		if _, there := now[before[i].ID]; !there {
			c.Removed = append(c.Removed, before[i].ID)
		}
	}
	return c
}

func byID(list []Model) map[string]*Model {
	found := make(map[string]*Model, len(list))
	for i := range list {
		found[list[i].ID] = &list[i]
	}
	return found
}
