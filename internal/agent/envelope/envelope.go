package envelope

import "github.com/go-json-experiment/json/jsontext"

// Envelope is what an agent's program prints. Every member is always there.
type Envelope struct {
	Payloads []Payload `json:"payloads"`
	Meta     Meta      `json:"meta"`
}

// Payload is one thing that the agent says.
type Payload struct {
	Text     string  `json:"text"`
	MediaURL *string `json:"mediaUrl"`
}

// Meta is what there is to know about the turn.
type Meta struct {
	DurationMs int64     `json:"durationMs"`
	AgentMeta  AgentMeta `json:"agentMeta"`
	Error      *Error    `json:"error"`
	// Atoll holds everything beyond the common form.
	Atoll jsontext.Value `json:"atoll,omitempty"`
}

// AgentMeta says who answered. Usage is the program's own word, for people to
// look at; what is paid is counted elsewhere.
type AgentMeta struct {
	SessionID string `json:"sessionId"`
	Provider  string `json:"provider"`
	Model     string `json:"model"` // <provider>/<id>
	Usage     Usage  `json:"usage"`
}

// Usage counts tokens.
type Usage struct {
	Input  int64 `json:"input"`
	Output int64 `json:"output"`
	Total  int64 `json:"total"`
}

// Error is why the turn failed.
type Error struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Text is everything that the agent says, paragraph by paragraph.
func (e *Envelope) Text() string {
	text := ""
	for _, p := range e.Payloads {
		if p.Text == "" {
			continue
		}
		if text != "" {
			text += "\n\n"
		}
		text += p.Text
	}
	return text
}
