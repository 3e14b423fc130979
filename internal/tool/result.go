package tool

import (
	"context"
	"errors"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
)

// MaxText bounds the text of a result, whatever the tool. Tools have narrower
// limits of their own; this one holds for what they forget.
const MaxText = 256 << 10

const (
	// WhereHost is where a call works that no sandbox holds.
	WhereHost = "host"
	// WhereAtoll is where a call works that asks only what Atoll itself keeps.
	WhereAtoll = "atoll"
)

// Result is what a model is told about a call.
type Result struct {
	Text    string  `json:"text"`
	IsError bool    `json:"isError"`
	Images  []Image `json:"images,omitempty"`
	// Details are for programs: what the text says, in fields.
	Details any `json:"details,omitempty"`
	// Where is "isolated", "networked", "host", "atoll" or "browser", Sandbox the name of the
	// sandbox and Image what that is made of. Set fills them in.
	Where   string `json:"where"`
	Sandbox string `json:"sandbox,omitempty"`
	Image   string `json:"image,omitempty"`
}

// Image is a picture for the model.
type Image struct {
	MediaType string `json:"mediaType"`
	Data      []byte `json:"data"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
}

// ErrorResult tells a model about a call that failed, with the way out if there
// is one.
func ErrorResult(err error) *Result {
	text := err.Error()
	if e, ok := errors.AsType[interface {
		error
		Explain() string
	}](err); ok {
		text = strings.TrimRight(strings.Replace(text, e.Error(), e.Explain(), 1), "\n")
	}
	if hint := errhint.Of(err); hint != "" {
		text += "\nhint: " + hint
	}
	return &Result{Text: text, IsError: true}
}

// isBeyondModel tells errors that the caller must see from those that the model
// can do something about.
func isBeyondModel(err error) bool {
	for _, kind := range []error{context.Canceled, context.DeadlineExceeded, machine.ErrLost, machine.ErrBroken, machine.ErrClosed, errNoHalf} {
		if errors.Is(err, kind) {
			return true
		}
	}
	_, denied := errors.AsType[*DeniedError](err)
	_, arguments := errors.AsType[*ArgumentsError](err)
	return denied || arguments
}

// finish makes sure of what every result promises.
func (c *call) finish(r *Result) *Result {
	r.Text = cutMiddle(strings.ToValidUTF8(r.Text, "\uFFFD"), MaxText)
	switch {
	case r.Where == WhereBrowser:
	case c.tool.Ours:
		r.Where = WhereAtoll
	case c.at.Host:
		r.Where = WhereHost
		r.Text = strings.TrimRight(r.Text, "\n") + "\n[on the host, not in a sandbox]"
	default:
		r.Where, r.Sandbox, r.Image = string(c.half), c.at.Name, c.at.Image
	}
	return r
}

// TimedOut tells whether a command ran into its timeout.
func (r *Result) TimedOut() bool {
	details, ok := r.Details.(execDetails)
	return ok && details.TimedOut
}

// OutOfMemory tells whether a command was killed because memory ran out.
func (r *Result) OutOfMemory() bool {
	details, ok := r.Details.(execDetails)
	return ok && details.OOM
}
