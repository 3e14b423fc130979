package chat

import (
	"encoding/base64"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Role says who speaks.
type Role string

// The roles of a conversation. Instructions are no message: Request.System.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Message is one step of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Text  string `json:"text,omitempty"`
	Calls []Call `json:"calls,omitempty"` // of an assistant
	// CallID and IsError belong to the result of a tool.
	CallID  string `json:"callId,omitempty"`
	IsError bool   `json:"isError,omitempty"`
	// Images are pictures in the result of a tool.
	Images []Image `json:"images,omitempty"`
	// At is when a message that was read from a transcript was written there.
	At time.Time `json:"-"`
}

// Image is a picture for a model.
type Image struct {
	MediaType string `json:"mediaType"`
	Data      []byte `json:"data"`
}

// MaxImage is the largest picture that providers take: 5 MiB as base64.
const MaxImage = 5 << 20 / 4 * 3

// base64 returns the bytes of the picture as JSON carries them.
func (i *Image) base64() string { return base64.StdEncoding.EncodeToString(i.Data) }

// Call is a model's wish to have a tool called. Args is as the model wrote it:
// it may be no JSON at all.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Function is a tool that a model may call.
type Function struct {
	Name        string
	Description string
	Schema      jsontext.Value // JSON schema of its arguments
}

// Request is one question to a model.
type Request struct {
	Model     string
	System    string
	Messages  []Message
	Functions []Function
	MaxTokens int64 // of the answer; 0: the provider's own limit, where it has one
	Thinking  Level // how much the model thinks first
}

// Level is how much a model thinks before it answers; "" is its provider's to say.
type Level string

// The levels.
const (
	Off     Level = "off"
	Minimal Level = "minimal"
	Low     Level = "low"
	Medium  Level = "medium"
	High    Level = "high"
)

// Levels are all of them, the least first.
func Levels() []Level { return []Level{Off, Minimal, Low, Medium, High} }

// effort is the level where a provider is told one; "" where it is told nothing.
func (l Level) effort() string {
	if l == Off {
		return ""
	}
	return string(l)
}

// Stop says why a model stopped.
type Stop string

// The reasons. Anything a provider says beyond these is Finished.
const (
	Finished  Stop = "stop"
	WantsTool Stop = "tool_calls"
	TooLong   Stop = "length"
	Refused   Stop = "refused"
)

// Answer is what a model said.
type Answer struct {
	Model string // who answered, in the provider's words
	Text  string
	Calls []Call
	Stop  Stop
	Usage Usage
}

// Message is the answer as a step of the conversation.
func (a *Answer) Message() Message {
	return Message{Role: Assistant, Text: a.Text, Calls: a.Calls}
}

// Usage counts tokens. Input has everything that was read, cached or not.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// Total is all tokens.
func (u Usage) Total() int64 { return u.Input + u.Output }

// Plus adds the tokens of another call.
func (u Usage) Plus(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}
