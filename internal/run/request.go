package run

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/chat"
	"github.com/atoll-run/atoll/internal/lazyregexp"
	"github.com/atoll-run/atoll/internal/model/grant"
)

// Request is a task for an agent.
type Request struct {
	ID      string `json:"id"` // chosen by the caller, so that asking twice is asking once
	Variant string `json:"variant"`
	Account string `json:"account,omitempty"` // who pays
	Agent   string `json:"agent"`
	Session string `json:"session,omitempty"`
	Trace   string `json:"trace,omitempty"`
	Model   string `json:"model"` // as its provider calls it
	// API is how it is asked, "" being openai-completions; Window and MaxTokens
	// are what is known of it.
	API       string `json:"api,omitempty"`
	Window    int64  `json:"window,omitzero"`
	MaxTokens int64  `json:"maxTokens,omitzero"`
	// Embeddings is the model that its memories are compared by; "" is none.
	Embeddings string `json:"embeddings,omitempty"`
	// Messages is the conversation; the last is the user's, and the task.
	Messages []chat.Message `json:"messages"`
	Budget   grant.Budget   `json:"budget,omitzero"`
	Branch   string         `json:"branch,omitempty"` // key of the branch that commits are for
	// Checkout is the directory whose git checkout the branch is of, where the
	// configuration names no repository.
	Checkout string `json:"checkout,omitempty"`
	// Directory is the directory of the host that it works on, by an overlay of its own,
	// and Below where in it; "" is a workspace of its own.
	Directory string `json:"directory,omitempty"`
	Below     string `json:"below,omitempty"`
	// TimeoutMs is how long the agent may work, up to MaxTimeout; Memory is at
	// most what the variant allows. 0 is the variant's own.
	TimeoutMs int64 `json:"timeoutMs,omitzero"`
	Memory    int64 `json:"memory,omitzero"`
}

// Limits of a request.
const (
	MaxText     = 4 << 20 // all messages together
	MaxMessages = 10_000
	MaxTimeout  = 24 * time.Hour // that a request can ask for
)

// plainID is a name that can be part of a path, a header and a label.
var plainID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckID refuses what cannot be the id of a run.
func CheckID(id string) error {
	if !plainID.MatchString(id) {
		return fmt.Errorf("run id %q: letters, digits, dots, dashes and underscores, at most 100", id)
	}
	return nil
}

// Task is what the user wants.
func (r *Request) Task() string { return r.Messages[len(r.Messages)-1].Text }

// check finds everything that is wrong with a request.
func (r *Request) check() error {
	var problems []error
	if err := CheckID(r.ID); err != nil {
		problems = append(problems, err)
	}
	if r.Model == "" {
		problems = append(problems, errors.New("no model is named"))
	}
	if r.TimeoutMs < 0 || r.Memory < 0 {
		problems = append(problems, errors.New("timeout and memory cannot be negative"))
	}
	if r.Directory != "" && (!filepath.IsAbs(r.Directory) || !filepath.IsLocal(cmp.Or(r.Below, ".")) || r.Branch != "") {
		problems = append(problems, fmt.Errorf("directory %q with %q below it: a whole path, a path in it, and no branch", r.Directory, r.Below))
	}
	if r.TimeoutMs > MaxTimeout.Milliseconds() {
		problems = append(problems, fail("timeout_too_long", "a run may take at most %d seconds", int64(MaxTimeout.Seconds())))
	}
	return errors.Join(append(problems, r.checkMessages())...)
}

func (r *Request) checkMessages() error {
	size := 0
	for i := range r.Messages {
		m := &r.Messages[i]
		size += len(m.Text)
		if !utf8.ValidString(m.Text) || strings.ContainsRune(m.Text, 0) {
			return fail("prompt_not_text", "message %d is no text", i+1)
		}
	}
	switch {
	case len(r.Messages) == 0, r.Messages[len(r.Messages)-1].Role != chat.User, strings.TrimSpace(r.Task()) == "":
		return fail("prompt_empty", "the last message must be the user's, and say something")
	case size > MaxText, len(r.Messages) > MaxMessages:
		return fail("prompt_too_large", "%d messages with %d bytes are more than %d with %d", len(r.Messages), size, MaxMessages, MaxText)
	}
	return nil
}

// Failure is why a run has no answer. Its code is for programs.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f *Failure) Error() string { return f.Message }

func fail(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: fmt.Sprintf(format, args...)}
}

// failureOf makes a failure of any error.
func failureOf(err error, otherwise string) *Failure {
	if own, ok := errors.AsType[*Failure](err); ok {
		return own
	}
	return &Failure{Code: cmp.Or(otherwise, "failed"), Message: err.Error()}
}
