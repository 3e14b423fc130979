// Package dialect has the formats of the models' APIs: of errors, also in the
// middle of a stream, and of usage. It parses answers by their structure and never
// changes them.
package dialect

import "github.com/atoll-run/atoll/internal/model/proxy/ask"

// Dialect is the format of an API of models.
type Dialect int

// The dialects.
const (
	OpenAI    Dialect = iota // Chat Completions, and whatever has no dialect of its own
	Anthropic                // Messages
	Responses                // OpenAI's Responses
	Google                   // Google's generateContent
)

func (d Dialect) String() string {
	switch d {
	case Anthropic:
		return "messages"
	case Responses:
		return "responses"
	case Google:
		return "gemini"
	}
	return "chat"
}

// Of returns the dialect of a request.
func Of(shape ask.Shape) Dialect {
	switch shape {
	case ask.Messages, ask.Count:
		return Anthropic
	case ask.Responses, ask.Compact:
		return Responses
	case ask.Generate, ask.GenerateCount:
		return Google
	}
	return OpenAI
}
