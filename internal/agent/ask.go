package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// ask sends the conversation to the models in turn and returns the first answer.
func (r *run) ask(ctx context.Context) (*chat.Answer, error) {
	var failures []error
	for i := range r.Models {
		answer, err := r.askOne(ctx, &r.Models[i])
		if err == nil {
			return answer, nil
		}
		failures = append(failures, err)
		var e *chat.Error
		if ctx.Err() != nil || !errors.As(err, &e) || !e.NextModel() || i == len(r.Models)-1 {
			break
		}
		r.emit(Event{Type: Notice, Text: fmt.Sprintf("%s cannot answer (%v); asking %s", r.Models[i].Name, err, r.Models[i+1].Name)})
	}
	if len(failures) == 0 {
		return nil, &Error{Code: "no_model", Text: "there is no model to ask"}
	}
	return nil, failures[len(failures)-1]
}

// askOne asks one model, again if the reason of a failure may pass. What was
// already emitted of an answer that broke off cannot be taken back, so an event says
// that it begins anew.
func (r *run) askOne(ctx context.Context, m *Model) (answer *chat.Answer, err error) {
	pause, shrunk := r.limits.Pause, false
	for try := 1; ; try++ {
		if err := r.compactIfFull(m); err != nil {
			return nil, err
		}
		answer, err = m.Ask(ctx, r.request(m), func(text string) { r.emit(Event{Type: TextDelta, Text: text, Model: m.Name}) })
		if err == nil {
			r.recordAnswer(m, answer)
			return answer, nil
		}
		var e *chat.Error
		if errors.As(err, &e) && e.Code == chat.CodeContextOverflow && !shrunk {
			done, failure := r.compactAfterRefusal()
			if failure != nil {
				return nil, failure
			}
			if shrunk = true; done {
				continue
			}
		}
		if e == nil || !e.Retryable() || try == r.limits.Tries {
			return nil, err
		}
		r.emit(Event{Type: Notice, Text: fmt.Sprintf("asking %s again: %v", m.Name, err)})
		if err := sleep(ctx, max(pause, e.After)); err != nil {
			return nil, err
		}
		pause *= 2
	}
}

func (r *run) request(m *Model) *chat.Request {
	q := &chat.Request{
		Model: m.ID, System: r.System, MaxTokens: m.MaxTokens, Thinking: r.Thinking,
		Messages: r.Transcript.Messages(), Functions: r.Tools.Functions(),
	}
	if m.Plain {
		q.Thinking = ""
	}
	if m.NoImages {
		withoutImages(q.Messages)
	}
	return q
}

func (r *run) recordAnswer(m *Model, answer *chat.Answer) {
	r.Turns++
	r.Model, r.Last = m.Name, answer.Usage
	r.Usage = r.Usage.Plus(answer.Usage)
	if answer.Text != "" {
		r.Text = answer.Text
	}
	r.emit(Event{Type: UsageReport, Model: m.Name, Usage: &answer.Usage})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
