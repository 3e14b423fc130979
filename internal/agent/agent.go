package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// Model is a model that the agent may ask.
type Model struct {
	Name string // <provider>/<id>
	ID   string // as its provider calls it
	Asker
	ContextWindow int64 // tokens; 0: unknown, see unknownWindow
	MaxTokens     int64 // of an answer
	Plain         bool  // it does not think, whatever it is told
	NoImages      bool  // it takes no pictures
}

// Asker puts a question to a model: *chat.Client does.
type Asker interface {
	Ask(ctx context.Context, r *chat.Request, tell func(string)) (*chat.Answer, error)
}

// Tools are what the model may call.
type Tools interface {
	Functions() []chat.Function
	// Parallel reports whether calls of a tool may run beside others.
	Parallel(name string) bool
	// Call carries out a call. What the model can do something about is in the
	// result; an error ends the run.
	Call(ctx context.Context, name, args string) (Result, error)
}

// Result is what the model is told about a call.
type Result struct {
	Text    string `json:"text"`
	IsError bool   `json:"isError,omitzero"`
	// Images are pictures for the model, of at most chat.MaxImage bytes each.
	Images []chat.Image `json:"-"`
}

// Agent carries out tasks.
type Agent struct {
	Models     []Model // the first is asked; the others if it cannot answer
	System     string
	Tools      Tools
	Transcript *Transcript
	Limits     Limits
	Watch      func(Event) // called with every event; may be nil
	Thinking   chat.Level  // how much models think before they answer
}

// Outcome is how a run ended, also when it failed.
type Outcome struct {
	Text  string // the last thing the model said
	Model string // who said it
	Turns int
	Calls int
	Usage chat.Usage
	Last  chat.Usage // of the last answer
	Took  time.Duration
}

// Run gives the agent a message and works until the model is done. The outcome
// is never nil. Errors are *Error or *chat.Error.
func (a *Agent) Run(ctx context.Context, message string) (*Outcome, error) {
	r := &run{Agent: a, limits: a.Limits.withDefaults(), start: time.Now()}
	ctx, cancel := context.WithTimeoutCause(ctx, r.limits.Time, &Error{Code: CodeTime, Text: fmt.Sprintf("not done after %v", r.limits.Time)})
	defer cancel()
	err := r.work(ctx, message)
	if err != nil && ctx.Err() != nil {
		err = stopReason(ctx)
	}
	r.Took = time.Since(r.start)
	if err != nil {
		r.emit(Event{Type: Failed, Code: CodeOf(err), Text: err.Error()})
	}
	r.emit(Event{Type: Done, Model: r.Model, Usage: &r.Usage, TookMs: milliseconds(r.Took)})
	return &r.Outcome, err
}

// stopReason returns the error of a run whose context ended.
func stopReason(ctx context.Context) error {
	if own, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		return own
	}
	return &Error{Code: CodeStopped, Text: "the run was cancelled", Err: context.Cause(ctx)}
}

// CodeOf returns the code of the error that ended a run.
func CodeOf(err error) string {
	var own *Error
	var model *chat.Error
	switch {
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &model):
		return string(model.Code)
	}
	return "failed"
}

// run is a run under way.
type run struct {
	*Agent
	Outcome
	limits  Limits
	start   time.Time
	watchMu sync.Mutex // serialises Watch: tools run at the same time
}

func (r *run) emit(e Event) {
	if r.Watch == nil {
		return
	}
	r.watchMu.Lock()
	defer r.watchMu.Unlock()
	r.Watch(e)
}

func (r *run) work(ctx context.Context, message string) error {
	if err := r.limits.CheckMessage(message); err != nil {
		return err
	}
	if err := r.Transcript.closeOpenCalls(); err != nil {
		return err
	}
	if err := r.Transcript.Add(chat.Message{Role: chat.User, Text: message}); err != nil {
		return err
	}
	for {
		if err := r.limits.check(r.Turns, r.Usage); err != nil {
			return err
		}
		answer, err := r.ask(ctx)
		if err != nil {
			return err
		}
		if err := r.Transcript.Add(answer.Message()); err != nil {
			return err
		}
		if len(answer.Calls) == 0 {
			return r.finish(answer)
		}
		if err := r.carryOut(ctx, answer.Calls); err != nil {
			return err
		}
	}
}

// finish returns an error if the last answer was cut short.
func (r *run) finish(answer *chat.Answer) error {
	if answer.Stop == chat.TooLong {
		return &Error{Code: "answer_cut", Text: "the model's answer reached its length limit"}
	}
	return nil
}
