package openclaw

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"
)

// Model is an entry of a catalogue. Costs are always 0: what a call costs is
// the upstream's word, never the agent's.
type Model struct {
	ID            string   `json:"id"`
	Name          string   `json:"name"`
	Reasoning     bool     `json:"reasoning"`
	Input         []string `json:"input"`
	Cost          cost     `json:"cost"`
	ContextWindow int64    `json:"contextWindow"`
	MaxTokens     int64    `json:"maxTokens"`
}

// What a model can be shown.
const (
	inputText  = "text"
	inputImage = "image"
)

type cost struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cacheRead"`
	CacheWrite int `json:"cacheWrite"`
}

// What a catalogue says where its source does not.
const (
	defaultContext   = 200_000
	defaultMaxTokens = 8192
	// MaxModels, MaxEntries and MaxCatalogue bound a source: models, the entries
	// that name them, and bytes.
	MaxModels    = 1000
	MaxEntries   = 10_000
	MaxCatalogue = 4 << 20
	maxProblems  = 10
)

// source is what both kinds of source say about a model.
type source struct {
	name      string
	context   int64
	maxTokens int64
	vision    bool
	reasoning bool
}

// FromYAML reads the model_list of a LiteLLM configuration. Keys of providers,
// which such a file holds, are not looked at.
func FromYAML(data []byte) ([]Model, error) {
	var file struct {
		ModelList []struct {
			ModelName string `yaml:"model_name"`
			Info      struct {
				MaxInput  int64 `yaml:"max_input_tokens"`
				MaxOutput int64 `yaml:"max_output_tokens"`
				MaxTokens int64 `yaml:"max_tokens"`
				Vision    bool  `yaml:"supports_vision"`
				Reasoning bool  `yaml:"supports_reasoning"`
			} `yaml:"model_info"`
		} `yaml:"model_list"`
	}
	if len(data) > MaxCatalogue {
		return nil, fmt.Errorf("model list: %d bytes are more than %d", len(data), MaxCatalogue)
	}
	if err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&file); err != nil {
		return nil, fmt.Errorf("model list: %w", firstTypeError(err))
	}
	var sources []source
	for _, m := range file.ModelList {
		sources = append(sources, source{m.ModelName, m.Info.MaxInput, cmp.Or(m.Info.MaxOutput, m.Info.MaxTokens), m.Info.Vision, m.Info.Reasoning})
	}
	return catalogue(sources)
}

// firstTypeError leaves the first of many complaints about types, without our own types.
func firstTypeError(err error) error {
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok || len(wrong.Errors) == 0 {
		return err
	}
	first, _, _ := strings.Cut(wrong.Errors[0], " into ")
	return errors.New(first)
}

// FromList reads the answer of GET /v1/models, whose order means nothing: the
// models come sorted.
func FromList(data []byte) ([]Model, error) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if len(data) > MaxCatalogue {
		return nil, fmt.Errorf("model list: %d bytes are more than %d", len(data), MaxCatalogue)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("model list: %w", err)
	}
	var sources []source
	for _, m := range list.Data {
		sources = append(sources, source{name: m.ID})
	}
	slices.SortStableFunc(sources, func(a, b source) int { return strings.Compare(a.name, b.name) })
	return catalogue(sources)
}

// Entry is the catalogue entry of one model; 0 takes the default.
func Entry(id string, window, maxTokens int64) (Model, error) {
	list, err := catalogue([]source{{name: id, context: window, maxTokens: maxTokens}})
	if err != nil {
		return Model{}, err
	}
	return list[0], nil
}

// plainID is a name that can stand in a configuration, a header and a path.
var plainID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$`)

// catalogue makes entries in the order of the source. LiteLLM spreads a name
// that is there several times over its deployments, so it is one model; but then
// all of them must say the same of it. Up to maxProblems errors are reported.
func catalogue(sources []source) ([]Model, error) {
	if len(sources) == 0 {
		return nil, errors.New("model list: it is empty")
	}
	if len(sources) > MaxEntries {
		return nil, fmt.Errorf("model list: %d entries are more than %d", len(sources), MaxEntries)
	}
	var list []Model
	var problems []error
	index := map[string]int{}
	for i, s := range sources {
		first, twice := index[s.name]
		switch m := s.model(); {
		case strings.Contains(s.name, "*"):
			problems = append(problems, fmt.Errorf("model_list[%d]: %.60q is a pattern; name the models one by one", i, s.name))
		case !plainID.MatchString(s.name):
			problems = append(problems, fmt.Errorf("model_list[%d]: %.60q is no model name", i, s.name))
		case twice && !list[first].same(&m):
			problems = append(problems, fmt.Errorf("model_list[%d]: %q is there twice, and its limits differ", i, s.name))
		case !twice:
			index[s.name] = len(list)
			list = append(list, m)
		}
	}
	if len(list) > MaxModels {
		problems = append(problems, fmt.Errorf("model list: %d models are more than %d", len(list), MaxModels))
	}
	return list, joinFirst(problems)
}

// joinFirst joins at most maxProblems errors.
func joinFirst(problems []error) error {
	if more := len(problems) - maxProblems; more > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Errorf("model list: and %d more", more))
	}
	return errors.Join(problems...)
}

// same reports whether two entries of one name say the same.
func (m *Model) same(other *Model) bool {
	return m.Reasoning == other.Reasoning && m.ContextWindow == other.ContextWindow && m.MaxTokens == other.MaxTokens && slices.Equal(m.Input, other.Input)
}

func (s source) model() Model {
	input := []string{inputText}
	if s.vision {
		input = append(input, inputImage)
	}
	return Model{
		ID: s.name, Name: title(s.name), Reasoning: s.reasoning, Input: input,
		ContextWindow: positive(s.context, defaultContext), MaxTokens: positive(s.maxTokens, defaultMaxTokens),
	}
}

func positive(n, otherwise int64) int64 {
	if n > 0 {
		return n
	}
	return otherwise
}

// title makes a name for people: "gemini-2.5-flash" is "Gemini 2.5 Flash".
func title(id string) string {
	words := strings.FieldsFunc(id, func(r rune) bool { return r == '-' || r == '_' || r == '/' })
	for i, w := range words {
		words[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, " ")
}
