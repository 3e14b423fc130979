package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxOutput bounds what is read of a program's output.
const MaxOutput = 16 << 20

// maxWaste bounds the bytes that are looked at in places where no object ends:
// hostile output can make each of its lines look like a beginning.
const maxWaste = 4 << 20

// ErrNone is output without an envelope in it.
var ErrNone = errors.New("the output has no result in it")

// foreignEnvelope is the form that is read: that of the seed, and of the releases of
// OpenClaw that were recorded. What it does not name is ignored.
type foreignEnvelope struct {
	Result   jsontext.Value `json:"result"`
	Payloads []struct {
		Text     *string `json:"text"`
		MediaURL *string `json:"mediaUrl"`
	} `json:"payloads"`
	Meta *struct {
		DurationMs float64 `json:"durationMs"`
		Aborted    bool    `json:"aborted"`
		AgentMeta  struct {
			SessionID string `json:"sessionId"`
			Provider  string `json:"provider"`
			Model     string `json:"model"`
			Usage     struct {
				Input  float64 `json:"input"`
				Output float64 `json:"output"`
				Total  float64 `json:"total"`
			} `json:"usage"`
		} `json:"agentMeta"`
		Error jsontext.Value `json:"error"`
		Atoll jsontext.Value `json:"atoll"`
	} `json:"meta"`
}

// Parse finds the envelope in what a program printed. Other lines before and
// after it are ignored; of several objects the last envelope counts. It is an
// error if there is none, or if there is more output than MaxOutput.
func Parse(output []byte) (*Envelope, error) {
	if len(output) > MaxOutput {
		return nil, fmt.Errorf("the output has %d bytes, more than %d", len(output), MaxOutput)
	}
	var last *Envelope
	wasted := 0
	for rest := output; wasted <= maxWaste; {
		start := objectStart(rest)
		if start < 0 {
			break
		}
		rest = rest[start:]
		value, looked, err := firstValue(rest)
		if err != nil {
			wasted += looked
			rest = afterLine(rest)
			continue
		}
		if e := read(value); e != nil {
			last = e
		}
		rest = rest[len(value):]
	}
	if last == nil {
		return nil, ErrNone
	}
	return last, nil
}

// objectStart finds the next line that begins with an object.
func objectStart(b []byte) int {
	for at := 0; at < len(b); {
		line := b[at:]
		if trimmed := bytes.TrimLeft(line, " \t\r"); len(trimmed) > 0 && trimmed[0] == '{' {
			return at + len(line) - len(trimmed)
		}
		next := bytes.IndexByte(line, '\n')
		if next < 0 {
			return -1
		}
		at += next + 1
	}
	return -1
}

func afterLine(b []byte) []byte {
	_, after, _ := bytes.Cut(b, []byte("\n"))
	return after
}

// firstValue is the JSON value that b begins with, and how many bytes were
// looked at to find out.
func firstValue(b []byte) (jsontext.Value, int, error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(b), options()...)
	value, err := decoder.ReadValue()
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return nil, int(syntax.ByteOffset), err
	}
	if err != nil {
		return nil, len(b), err
	}
	return value, len(value), nil
}

// options forgive what other programs print; nothing is decided by it.
func options() []jsontext.Options {
	return []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
}

func read(value jsontext.Value) *Envelope {
	var t foreignEnvelope
	if json.Unmarshal(value, &t, json.JoinOptions(options()...)) != nil {
		return nil
	}
	if t.Result != nil {
		return read(t.Result) // the gateway's answer holds the envelope
	}
	if t.Meta == nil || t.Payloads == nil {
		return nil
	}
	e := &Envelope{Payloads: []Payload{}}
	for _, p := range t.Payloads {
		text := ""
		if p.Text != nil {
			text = *p.Text
		}
		e.Payloads = append(e.Payloads, Payload{text, p.MediaURL})
	}
	meta := t.Meta.AgentMeta
	usage := Usage{count(meta.Usage.Input), count(meta.Usage.Output), count(meta.Usage.Total)}
	e.Meta = Meta{
		DurationMs: count(t.Meta.DurationMs),
		AgentMeta:  AgentMeta{meta.SessionID, meta.Provider, fullName(meta.Provider, meta.Model), usage},
		Error:      readError(t.Meta.Error, t.Meta.Aborted),
		Atoll:      t.Meta.Atoll,
	}
	return e
}

// fullName puts the provider before a model that lacks it.
func fullName(provider, model string) string {
	if provider == "" || model == "" || strings.HasPrefix(model, provider+"/") {
		return model
	}
	return provider + "/" + model
}

// count is a number as a count: not negative, and within what a float holds.
func count(f float64) int64 {
	if !(f > 0) || f > 1<<53 {
		return 0
	}
	return int64(f)
}

// readError takes an error as an object or as text.
func readError(value jsontext.Value, aborted bool) *Error {
	var e Error
	var text string
	switch value.Kind() {
	case '{':
		if json.Unmarshal(value, &e, json.JoinOptions(options()...)) != nil || e.Kind == "" {
			e.Kind = "error"
		}
		return &e
	case '"':
		if json.Unmarshal(value, &text) != nil {
			text = "unreadable"
		}
		return &Error{Kind: "error", Message: text}
	}
	if aborted {
		return &Error{Kind: "aborted", Message: "the agent says that the turn was aborted"}
	}
	return nil
}
