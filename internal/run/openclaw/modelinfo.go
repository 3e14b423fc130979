package openclaw

import (
	"math"
	"slices"

	"github.com/go-json-experiment/json"
)

// Known fills a list that has names only with what is known of its models: what
// LiteLLM's GET /model/info says (nil: nothing), and for the others what a catalogue
// of before said.
func Known(list []Model, info []byte, before []Model) []Model {
	told := readInfo(info)
	list = slices.Clone(list)
	for i := range list {
		m := &list[i]
		if s, ok := told[m.ID]; ok {
			*m = s.model()
			continue
		}
		if j := slices.IndexFunc(before, func(b Model) bool { return b.ID == m.ID }); j >= 0 {
			*m = before[j]
		}
	}
	return list
}

// readInfo reads what an answer says of sizes, by name; of models that it says no
// size of, nothing. Of several deployments the smallest counts.
func readInfo(info []byte) map[string]source {
	var answer struct {
		Data []struct {
			Name string `json:"model_name"`
			Info struct {
				MaxInput  *float64 `json:"max_input_tokens"`
				MaxOutput *float64 `json:"max_output_tokens"`
				Vision    *bool    `json:"supports_vision"`
				Reasoning *bool    `json:"supports_reasoning"`
			} `json:"model_info"`
		} `json:"data"`
	}
	if len(info) > MaxCatalogue || json.Unmarshal(info, &answer) != nil {
		return nil
	}
	told := map[string]source{}
	for _, m := range answer.Data {
		s := source{name: m.Name, context: tokens(m.Info.MaxInput), maxTokens: tokens(m.Info.MaxOutput), vision: isTrue(m.Info.Vision), reasoning: isTrue(m.Info.Reasoning)}
		if s.context == 0 {
			continue
		}
		if other, twice := told[m.Name]; twice {
			s.context, s.maxTokens = min(s.context, other.context), min(s.maxTokens, other.maxTokens)
			s.vision, s.reasoning = s.vision && other.vision, s.reasoning && other.reasoning
		}
		told[m.Name] = s
	}
	return told
}

func tokens(n *float64) int64 {
	if n == nil || !(*n > 0) {
		return 0
	}
	return int64(min(*n, math.MaxInt32))
}

func isTrue(b *bool) bool { return b != nil && *b }
