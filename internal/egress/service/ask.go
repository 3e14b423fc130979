package service

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/egress"
	"github.com/atoll-run/atoll/internal/model/grant"
)

const (
	// QuestionKind is the kind of the questions about connections in the queue.
	QuestionKind = "egress"
	// askHold is how long a connection waits for a person. The question stays open after
	// it, so that an answer counts for the next attempt.
	askHold = time.Minute
	askOpen = time.Hour
	askPoll = 250 * time.Millisecond
	// maxAsked is how many questions of one grant are open: a program inside can ask for
	// any number of names, and the queue is that of the whole account.
	maxAsked = 16
)

// asker puts connections that no rule decides to a person.
func (s *Service) asker(g *grant.Grant) egress.Asker {
	a := &questions{queue: s.approvals, grant: g, once: map[string]bool{}, asked: map[string]string{}}
	return a.ask
}

// questionQueue is what questions need of an approval.Queue.
type questionQueue interface {
	Ask(ctx context.Context, r *approval.Request) (*approval.Question, error)
	Get(ctx context.Context, id string) (*approval.Question, error)
}

// questions are those of one grant. The answer "once" is for as long as the grant is open.
type questions struct {
	queue questionQueue
	grant *grant.Grant

	mu    sync.Mutex
	once  map[string]bool   // by NAME:PORT
	asked map[string]string // ids of questions without an answer, by NAME:PORT
}

// ask waits for the answer to a question, for at most askHold.
func (a *questions) ask(ctx context.Context, q egress.Question) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askHold)
	defer cancel()
	target := fmt.Sprintf("%s:%d", q.Name, q.Port)
	if allowed, known := a.answered(ctx, target); known {
		return allowed, nil
	}
	if err := a.reserve(ctx, target); err != nil {
		return false, err
	}
	defer a.drop(target)
	asked, err := a.queue.Ask(ctx, a.request(&q, target))
	for err == nil && asked.State == approval.Open {
		a.note(target, asked.ID)
		select {
		case <-time.After(askPoll):
		case <-ctx.Done():
			return false, fmt.Errorf("no person has answered within %v: question %s stays open (`atoll approvals approve %s`)", askHold, asked.ID, asked.ID)
		}
		asked, err = a.queue.Get(ctx, asked.ID)
	}
	if err != nil {
		return false, err
	}
	return a.keep(target, asked), nil
}

// request is the question as the queue has it.
func (a *questions) request(q *egress.Question, target string) *approval.Request {
	t := a.grant.Terms()
	evidence := []string{"host: " + q.Name, fmt.Sprintf("port: %d", q.Port), "sandbox: " + a.grant.Sandbox()}
	if q.Hint != "" {
		evidence = append(evidence, "to allow it for good: "+q.Hint)
	}
	return &approval.Request{
		Kind: QuestionKind, Subject: a.grant.Sandbox() + " " + target, Summary: "may programs in " + a.grant.Sandbox() + " connect to " + target + "?",
		Owner:    approval.Owner{Account: t.Account, Agent: t.Agent, Session: t.Session, Run: t.Run},
		Evidence: strings.Join(evidence, "\n") + "\n", Rule: "egress " + target, For: askOpen,
	}
}

// answered returns the answer to an earlier question about a target, if it is known.
func (a *questions) answered(ctx context.Context, target string) (allowed, known bool) {
	a.mu.Lock()
	allowed, known = a.once[target]
	id := a.asked[target]
	a.mu.Unlock()
	if known || id == "" {
		return allowed, known
	}
	asked, err := a.queue.Get(ctx, id)
	if err != nil || asked.State != approval.Answered {
		return false, false
	}
	return a.keep(target, asked), true
}

// reserve counts a question as open before it is asked. It is refused while maxAsked
// others have no answer; those that were answered or have expired meanwhile do not count.
func (a *questions) reserve(ctx context.Context, target string) error {
	if a.add(target) {
		return nil
	}
	a.mu.Lock()
	asked := maps.Clone(a.asked)
	a.mu.Unlock()
	for other, id := range asked {
		if id == "" { // it is being asked
			continue
		}
		if q, err := a.queue.Get(ctx, id); err == nil && q.State != approval.Open {
			a.keep(other, q)
		}
	}
	if a.add(target) {
		return nil
	}
	return fmt.Errorf("%d questions of this sandbox wait for an answer already: see `atoll approvals list`", maxAsked)
}

// add adds a question without an id, if there is room or it is there already.
func (a *questions) add(target string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, there := a.asked[target]; there {
		return true
	}
	if len(a.asked) >= maxAsked {
		return false
	}
	a.asked[target] = ""
	return true
}

// drop removes a question that was added and not asked.
func (a *questions) drop(target string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asked[target] == "" {
		delete(a.asked, target)
	}
}

func (a *questions) note(target, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked[target] = id
}

// keep keeps the answer for the rest of the grant and returns it. A question that expired
// may be asked again.
func (a *questions) keep(target string, asked *approval.Question) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, target)
	if asked.State != approval.Answered {
		return false
	}
	a.once[target] = asked.Answer.Allows()
	return a.once[target]
}
