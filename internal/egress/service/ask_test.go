package service

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/egress"
)

// expiring is a queue whose questions are open until they are marked as expired.
type expiring map[string]bool

func (expiring) Ask(context.Context, *approval.Request) (*approval.Question, error) {
	return nil, fmt.Errorf("asked")
}

func (q expiring) Get(_ context.Context, id string) (*approval.Question, error) {
	if q[id] {
		return &approval.Question{ID: id, State: approval.Expired}, nil
	}
	return &approval.Question{ID: id, State: approval.Open}, nil
}

// TestQuestionsOfAGrantAreBounded has as many open questions as a grant may: a further
// one is refused without the queue, and is not once another has expired.
func TestQuestionsOfAGrantAreBounded(t *testing.T) {
	queue := expiring{}
	a := &questions{queue: queue, once: map[string]bool{}, asked: map[string]string{}}
	for i := range maxAsked {
		a.note(fmt.Sprintf("name%d.example:443", i), fmt.Sprint(i))
	}
	allowed, err := a.ask(t.Context(), egress.Question{Name: "further.example", Port: 443})
	if allowed || err == nil || !strings.Contains(err.Error(), "atoll approvals list") {
		t.Errorf("%v, %v", allowed, err)
	}
	if err := a.reserve(t.Context(), "name3.example:443"); err != nil {
		t.Errorf("a question that is open already: %v", err)
	}
	queue["7"] = true
	if err := a.reserve(t.Context(), "further.example:443"); err != nil {
		t.Errorf("after one has expired: %v", err)
	}
}
