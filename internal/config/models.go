package config

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Models is models.*: which providers there are and what they serve.
type Models struct {
	Mode      string              `json:"mode,omitempty" enum:"merge|replace" doc:"Add to the built-in providers, or replace them."`
	Providers map[string]Provider `json:"providers,omitzero" keys:"line" doc:"Providers by id."`
	_         struct{}            `accept:"models"`
}

// Provider is one of models.providers.
type Provider struct {
	BaseURL    string            `json:"baseUrl,omitempty" check:"line" doc:"Where the API is."`
	APIKey     *Secret           `json:"apiKey,omitzero" doc:"Key of the API, or where it is kept."`
	Auth       string            `json:"auth,omitempty" enum:"api-key|aws-sdk|oauth|token" doc:"How requests are authenticated."`
	API        string            `json:"api,omitempty" enum:"openai-completions|openai-responses|openai-chatgpt-responses|openai-codex-responses|azure-openai-responses|anthropic-messages|google-generative-ai|google-vertex|github-copilot|bedrock-converse-stream|ollama|pi-messages" doc:"The API's dialect."`
	Headers    map[string]Secret `json:"headers,omitzero" keys:"line" doc:"Headers of every request."`
	AuthHeader *bool             `json:"authHeader,omitzero" doc:"Send the key in the Authorization header."`
	Models     []Model           `json:"models,omitzero" doc:"What the provider serves."`
	_          struct{}          `accept:"models.providers"`
}

// Model is one of a provider's models.
type Model struct {
	ID            string            `json:"id" required:"yes" check:"line" doc:"Name in the API."`
	Name          string            `json:"name,omitempty" check:"line" doc:"Name for people."`
	API           string            `json:"api,omitempty" check:"line" doc:"The API's dialect, if not the provider's."`
	Reasoning     *bool             `json:"reasoning,omitzero" doc:"The model can reason."`
	Input         []string          `json:"input,omitzero" enum:"text|image|video|audio" doc:"What the model takes."`
	Cost          *Cost             `json:"cost,omitzero" doc:"Price of a million tokens."`
	ContextWindow *float64          `json:"contextWindow,omitzero" above:"0" doc:"Tokens of context."`
	MaxTokens     *float64          `json:"maxTokens,omitzero" above:"0" doc:"Most tokens of an answer."`
	Headers       map[string]string `json:"headers,omitzero" keys:"line" doc:"Headers of every request for this model."`
	_             struct{}          `accept:"models.providers.models"`
}

// Cost is the price of a million tokens.
type Cost struct {
	Input      float64  `json:"input,omitzero" min:"0" doc:"Tokens read."`
	Output     float64  `json:"output,omitzero" min:"0" doc:"Tokens written."`
	CacheRead  float64  `json:"cacheRead,omitzero" min:"0" doc:"Tokens read from the cache."`
	CacheWrite float64  `json:"cacheWrite,omitzero" min:"0" doc:"Tokens written to the cache."`
	_          struct{} `accept:"models.providers.models.cost"`
}

// ModelChoice is the model of an agent: one, or one with fallbacks.
type ModelChoice struct {
	Primary   string   `json:"primary,omitempty"`
	Fallbacks []string `json:"fallbacks,omitzero"`
}

// modelChoiceFile is its long form.
type modelChoiceFile struct {
	Primary   string   `json:"primary,omitempty" check:"line" doc:"The model: provider/name."`
	Fallbacks []string `json:"fallbacks,omitzero" check:"line" doc:"Models to try when it fails, in order."`
	_         struct{} `accept:"agents.model"`
}

// Forms returns a value of each form that the file may have.
func (ModelChoice) Forms() []any { return []any{"", modelChoiceFile{}} }

// UnmarshalJSON reads a name, or a primary name and fallbacks.
func (m *ModelChoice) UnmarshalJSON(b []byte) error {
	*m = ModelChoice{}
	if jsontext.Value(b).Kind() == '"' {
		return json.Unmarshal(b, &m.Primary)
	}
	var long modelChoiceFile
	err := json.Unmarshal(b, &long)
	m.Primary, m.Fallbacks = long.Primary, long.Fallbacks
	return err
}
