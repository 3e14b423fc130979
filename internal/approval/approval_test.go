package approval_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/clocktest"
)

func open(t *testing.T, path string, c *clocktest.Clock) *approval.Queue {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return approval.New(db, c.Now)
}

func newQueue(t *testing.T) (*approval.Queue, *clocktest.Clock) {
	c := clocktest.At(time.UnixMilli(1_800_000_000_000))
	return open(t, filepath.Join(t.TempDir(), "atoll.db"), c), c
}

func request(subject, evidence string) *approval.Request {
	return &approval.Request{
		Kind: "relay", Subject: subject, Summary: "push?", Evidence: evidence,
		Owner: approval.Owner{Account: "ann", Agent: "main", Session: "s1", Run: subject},
	}
}

func ask(t *testing.T, q *approval.Queue, r *approval.Request) *approval.Question {
	t.Helper()
	asked, err := q.Ask(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

func yes(q *approval.Question) approval.Reply {
	return approval.Reply{Answer: approval.Once, Hash: q.Hash, By: "ann"}
}

// A question is asked once, survives a restart and is answered once; repeating
// the answer is no error, another one is.
func TestAskAndAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.db")
	c := clocktest.At(time.UnixMilli(1_800_000_000_000))
	q := open(t, path, c)
	var events []string
	cancel := q.Subscribe(func(e approval.Event) { events = append(events, e.Type) })
	first := ask(t, q, request("r1", "evidence"))
	if again := ask(t, q, request("r1", "evidence")); again.ID != first.ID || first.Hash != approval.HashOf("evidence") {
		t.Errorf("asked again: %+v", again)
	}
	if _, err := q.Answer(t.Context(), first.ID, yes(first)); err != nil {
		t.Fatal(err)
	}
	cancel()
	later := open(t, path, c)
	got, err := later.Get(t.Context(), first.ID)
	if err != nil || got.State != approval.Answered || got.Answer != approval.Once || got.AnsweredBy != "ann" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := later.Answer(t.Context(), first.ID, yes(first)); err != nil {
		t.Errorf("the same answer: %v", err)
	}
	for name, r := range map[string]approval.Reply{"no": {approval.Deny, first.Hash, "ann"}, "somebody else": {approval.Once, first.Hash, "bob"}} {
		if _, err := later.Answer(t.Context(), first.ID, r); !errors.Is(err, approval.ErrAnswered) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := strings.Join(events, " "); got != "asked answered" {
		t.Errorf("events: %s", got)
	}
	if _, err := later.Answer(t.Context(), "nothing", yes(first)); !errors.Is(err, approval.ErrNotFound) {
		t.Errorf("no question: %v", err)
	}
}

// An answer is for the evidence that it names; other evidence voids the question.
func TestEvidence(t *testing.T) {
	q, _ := newQueue(t)
	first := ask(t, q, request("r1", "harmless"))
	forged := yes(first)
	forged.Hash = approval.HashOf("something else")
	if _, err := q.Answer(t.Context(), first.ID, forged); !errors.Is(err, approval.ErrChanged) {
		t.Errorf("another hash: %v", err)
	}
	second := ask(t, q, request("r1", "harmful"))
	if _, err := q.Answer(t.Context(), first.ID, yes(first)); !errors.Is(err, approval.ErrReplaced) {
		t.Errorf("the replaced one: %v", err)
	}
	if list, err := q.List(t.Context(), approval.Filter{Open: true}); err != nil || len(list) != 1 || list[0].ID != second.ID {
		t.Errorf("%+v, %v", list, err)
	}
}

// A question that expires has its default answer and takes no other.
func TestExpiry(t *testing.T) {
	q, c := newQueue(t)
	var expired []string
	q.Subscribe(func(e approval.Event) {
		if e.Type == approval.EventExpired {
			expired = append(expired, e.Question.ID)
		}
	})
	r := request("r1", "x")
	r.For = time.Minute
	first := ask(t, q, r)
	c.Move(time.Minute - time.Millisecond)
	if list, _ := q.List(t.Context(), approval.Filter{Open: true}); len(list) != 1 {
		t.Errorf("before its time: %v", list)
	}
	c.Move(time.Millisecond)
	if got, err := q.Answer(t.Context(), first.ID, yes(first)); !errors.Is(err, approval.ErrExpired) || got.Answer != approval.Deny {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := q.Get(t.Context(), first.ID); err != nil || len(expired) != 1 {
		t.Errorf("expired %v, %v", expired, err)
	}
	if again := ask(t, q, request("r1", "x")); again.ID == first.ID || again.State != approval.Open {
		t.Errorf("asked again: %+v", again)
	}
}

// Of many answers at once the first wins.
func TestConcurrentAnswers(t *testing.T) {
	q, _ := newQueue(t)
	asked := ask(t, q, request("r1", "x"))
	var mu sync.Mutex
	var all sync.WaitGroup
	won := map[string]bool{}
	for i := range 16 {
		all.Go(func() {
			r := approval.Reply{Answer: []approval.Answer{approval.Once, approval.Deny}[i%2], Hash: asked.Hash, By: fmt.Sprint("person", i)}
			if _, err := q.Answer(t.Context(), asked.ID, r); err == nil {
				mu.Lock()
				won[r.By] = true
				mu.Unlock()
			} else if !errors.Is(err, approval.ErrAnswered) {
				t.Errorf("%s: %v", r.By, err)
			}
		})
	}
	all.Wait()
	got, err := q.Get(t.Context(), asked.ID)
	if err != nil || len(won) != 1 || !won[got.AnsweredBy] {
		t.Errorf("%v won, %+v, %v", won, got, err)
	}
}

// The session and the rule of an answer decide later questions with the rule, and
// no others.
func TestLastingAnswers(t *testing.T) {
	for _, c := range []struct {
		answer  approval.Answer
		covered []string // sessions
	}{{approval.Once, nil}, {approval.Session, []string{"s1"}}, {approval.Rule, []string{"s1", "s2"}}} {
		q, _ := newQueue(t)
		first := request("a", "x")
		first.Rule = "npm test"
		asked := ask(t, q, first)
		r := yes(asked)
		r.Answer = c.answer
		if _, err := q.Answer(t.Context(), asked.ID, r); err != nil {
			t.Fatal(err)
		}
		var covered []string
		for i, owner := range []approval.Owner{{"ann", "main", "s1", ""}, {"ann", "main", "s2", ""}, {"bob", "main", "s1", ""}, {"ann", "other", "s1", ""}} {
			next := request(fmt.Sprint("next", i), "y")
			next.Rule, next.Owner = "npm test", owner
			if later := ask(t, q, next); later.State == approval.Answered {
				covered = append(covered, owner.Session)
			}
		}
		if fmt.Sprint(covered) != fmt.Sprint(c.covered) {
			t.Errorf("%s covers %v", c.answer, covered)
		}
		other := request("other", "z")
		other.Rule = "npm publish"
		if later := ask(t, q, other); later.State != approval.Open {
			t.Errorf("%s covers another rule", c.answer)
		}
	}
}

// Neither an account nor all of them can fill the queue, and closed questions go.
func TestBounds(t *testing.T) {
	q, c := newQueue(t)
	for i := range approval.MaxOpen {
		ask(t, q, request(fmt.Sprint("r", i), "x"))
	}
	if _, err := q.Ask(t.Context(), request("more", "x")); !errors.Is(err, approval.ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	bob := request("bobs", "x")
	bob.Owner.Account = "bob"
	ask(t, q, bob)
	if again := ask(t, q, request("r0", "other")); again.State != approval.Open {
		t.Errorf("a replaced one counts: %+v", again)
	}
	c.Move(approval.DefaultTime)
	ask(t, q, request("after", "x"))
	for name, change := range map[string]func(*approval.Request){
		"large evidence": func(r *approval.Request) { r.Evidence = strings.Repeat("x", approval.MaxEvidence+1) },
		"no text":        func(r *approval.Request) { r.Evidence = "\xff" },
		"no summary":     func(r *approval.Request) { r.Summary = "" },
		"long subject":   func(r *approval.Request) { r.Subject = strings.Repeat("x", 301) },
		"too long":       func(r *approval.Request) { r.For = approval.MaxTime + 1 },
		"lasting yes":    func(r *approval.Request) { r.Default = approval.Rule },
	} {
		r := request("bad", "x")
		change(r)
		if _, err := q.Ask(t.Context(), r); err == nil {
			t.Errorf("%s was asked", name)
		}
	}
	asked := ask(t, q, request("plain", "x"))
	for _, answer := range []approval.Answer{approval.Session, approval.Rule, "perhaps", ""} {
		if _, err := q.Answer(t.Context(), asked.ID, approval.Reply{Answer: answer, Hash: asked.Hash, By: "ann"}); err == nil {
			t.Errorf("%q was taken", answer)
		}
	}
	if _, err := q.Answer(t.Context(), asked.ID, approval.Reply{Answer: approval.Once, Hash: asked.Hash}); err == nil {
		t.Error("an answer of nobody was taken")
	}
}

// Closed questions beyond the bound are removed, the oldest first.
func TestClosedQuestionsAreRemoved(t *testing.T) {
	path, c := filepath.Join(t.TempDir(), "atoll.db"), clocktest.At(time.UnixMilli(1_800_000_000_000))
	q := open(t, path, c)
	askAndAnswer(t, q, "r0")
	repeatAnswered(t, path, approval.MaxKept-1)
	for i := range 5 {
		c.Move(approval.MaxKept * time.Millisecond)
		askAndAnswer(t, q, fmt.Sprint("r", approval.MaxKept+i))
	}
	ask(t, q, request("last", "x"))
	for subject, stored := range map[string]int{"r0": 0, "r4": 0, "r5": 1, "r1000": 1, "r1004": 1} {
		if list, err := q.List(t.Context(), approval.Filter{Subject: subject}); err != nil || len(list) != stored {
			t.Errorf("%s: %v, %v", subject, list, err)
		}
	}
}

func askAndAnswer(t *testing.T, q *approval.Queue, subject string) {
	t.Helper()
	asked := ask(t, q, request(subject, "x"))
	if _, err := q.Answer(t.Context(), asked.ID, yes(asked)); err != nil {
		t.Fatal(err)
	}
}

// repeatAnswered copies the answered question r0 as r1, r2 and so on, each created a
// millisecond later: to ask and answer a thousand takes a minute with the race detector.
func repeatAnswered(t *testing.T, path string, times int) {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE later(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM later WHERE n < ?)
		INSERT INTO approvals SELECT id || n, kind, 'r' || n, account, agent, session, run, summary, rule, evidence, hash,
			created_at_ms + n, expires_at_ms, fallback, state, answer, answered_by, answered_at_ms FROM approvals, later`, times)
	if err != nil {
		t.Fatal(err)
	}
}
