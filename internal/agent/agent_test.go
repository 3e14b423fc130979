package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/atoll-run/atoll/internal/agent"
	"github.com/atoll-run/atoll/internal/agent/chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// replies is a model that gives its answers in order, and keeps the questions.
type replies struct {
	answers []any // *chat.Answer or error
	asked   []*chat.Request
}

func (r *replies) Ask(ctx context.Context, q *chat.Request, tell func(string)) (*chat.Answer, error) {
	r.asked = append(r.asked, q)
	if len(r.asked) > len(r.answers) {
		return says("done"), nil
	}
	switch a := r.answers[len(r.asked)-1].(type) {
	case *chat.Answer:
		tell(a.Text)
		return a, nil
	case error:
		return nil, a
	}
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func says(text string) *chat.Answer {
	return &chat.Answer{Text: text, Stop: chat.Finished, Usage: chat.Usage{Input: 10, Output: 5}}
}

func calls(names ...string) *chat.Answer {
	a := &chat.Answer{Stop: chat.WantsTool, Usage: chat.Usage{Input: 10, Output: 5}}
	for i, name := range names {
		a.Calls = append(a.Calls, chat.Call{ID: fmt.Sprintf("%s-%d", name, i), Name: name, Args: "{}"})
	}
	return a
}

// box is a set of tools that notes what is called.
type box struct {
	mu     sync.Mutex
	called []string
	do     func(ctx context.Context, name string) (agent.Result, error)
}

func (b *box) Functions() []chat.Function {
	return []chat.Function{{Name: "look"}, {Name: "change"}}
}
func (b *box) Parallel(name string) bool { return name == "look" }
func (b *box) Call(ctx context.Context, name, _ string) (agent.Result, error) {
	b.mu.Lock()
	b.called = append(b.called, name)
	b.mu.Unlock()
	if b.do != nil {
		return b.do(ctx, name)
	}
	return agent.Result{Text: name + " ok"}, nil
}

type stage struct {
	agent.Agent
	model *replies
	box   *box
	path  string
	seen  []agent.EventType
}

func newStage(t *testing.T, answers ...any) *stage {
	t.Helper()
	s := &stage{model: &replies{answers: answers}, box: &box{}, path: filepath.Join(t.TempDir(), "s.jsonl")}
	s.Models = []agent.Model{{Name: "p/m", ID: "m", Asker: s.model}}
	s.Tools, s.Limits.Pause = s.box, time.Millisecond
	s.Watch = func(e agent.Event) {
		s.seen = append(s.seen, e.Type)
		if _, err := json.Marshal(&e); err != nil {
			t.Errorf("event: %v", err)
		}
	}
	s.reopen(t)
	return s
}

// reopen is what the next process does.
func (s *stage) reopen(t *testing.T) {
	t.Helper()
	transcript, err := agent.OpenTranscript(s.path, "s1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = transcript.Close() })
	s.Transcript = transcript
}

func TestLoop(t *testing.T) {
	s := newStage(t, calls("look", "look", "change"), says("all done"))
	out, err := s.Run(t.Context(), "work")
	if err != nil || out.Text != "all done" || out.Turns != 2 || out.Calls != 3 || out.Usage.Total() != 30 {
		t.Fatalf("%+v, %v", out, err)
	}
	var said []string
	for _, m := range s.model.asked[1].Messages {
		said = append(said, fmt.Sprintf("%s %s%s", m.Role, m.Text, m.CallID))
	}
	want := []string{"user work", "assistant ", "tool look oklook-0", "tool look oklook-1", "tool change okchange-2"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
	if s.seen[len(s.seen)-1] != agent.Done {
		t.Errorf("events %v", s.seen)
	}
}

// Tools that only look run beside each other; one that changes runs alone.
func TestParallelCalls(t *testing.T) {
	s := newStage(t, calls("look", "look", "change"))
	var meet sync.WaitGroup
	meet.Add(2)
	looking := 0
	s.box.do = func(_ context.Context, name string) (agent.Result, error) {
		s.box.mu.Lock()
		if name == "change" && looking != 2 {
			t.Error("change began before both looks were done")
		}
		s.box.mu.Unlock()
		if name == "look" {
			meet.Done()
			meet.Wait() // hangs unless both are under way
			s.box.mu.Lock()
			looking++
			s.box.mu.Unlock()
		}
		return agent.Result{Text: "ok"}, nil
	}
	if _, err := s.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
}

func TestEnds(t *testing.T) {
	unavailable := &chat.Error{Code: chat.CodeUnavailable, Message: "down"}
	for name, c := range map[string]struct {
		answers []any
		message string
		change  func(*stage)
		want    string
	}{
		"empty message":     {nil, " \n", nil, agent.CodeEmpty},
		"binary message":    {nil, "a\x00b", nil, agent.CodeNoText},
		"no text":           {nil, "\xff\xfe", nil, agent.CodeNoText},
		"five megabytes":    {nil, strings.Repeat("x", 5<<20), nil, agent.CodeMessage},
		"for ever":          {[]any{calls("look"), calls("look"), calls("look")}, "go", func(s *stage) { s.Limits.Turns = 2 }, agent.CodeTurns},
		"tokens":            {[]any{calls("look")}, "go", func(s *stage) { s.Limits.Tokens = 15 }, agent.CodeTokens},
		"time":              {[]any{nil}, "go", func(s *stage) { s.Limits.Time = 10 * time.Millisecond }, agent.CodeTime},
		"down":              {[]any{unavailable, unavailable, unavailable, says("late")}, "go", nil, string(chat.CodeUnavailable)},
		"budget":            {[]any{&chat.Error{Code: chat.CodeBudget}}, "go", nil, string(chat.CodeBudget)},
		"does not fit":      {nil, strings.Repeat("word ", 4000), func(s *stage) { s.Models[0].ContextWindow = 1000 }, agent.CodeOverflow},
		"no model":          {nil, "go", func(s *stage) { s.Models = nil }, "no_model"},
		"answer is cut":     {[]any{&chat.Answer{Text: "and then", Stop: chat.TooLong}}, "go", nil, "answer_cut"},
		"a tool that fails": {[]any{calls("look")}, "go", func(s *stage) { s.box.do = fails }, agent.CodeTool},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, c.answers...)
			if c.change != nil {
				c.change(s)
			}
			out, err := s.Run(t.Context(), c.message)
			if err == nil || agent.CodeOf(err) != c.want || out == nil {
				t.Errorf("outcome %+v, error %v (%s), want %s", out, err, agent.CodeOf(err), c.want)
			}
		})
	}
}

func fails(context.Context, string) (agent.Result, error) {
	return agent.Result{}, errors.New("the sandbox is gone")
}

func TestFallback(t *testing.T) {
	s := newStage(t, &chat.Error{Code: chat.CodeUnauthorized, Message: "no"})
	second := &replies{answers: []any{says("here")}}
	s.Models = append(s.Models, agent.Model{Name: "q/n", ID: "n", Asker: second})
	if out, err := s.Run(t.Context(), "go"); err != nil || out.Model != "q/n" || second.asked[0].Model != "n" {
		t.Errorf("%+v, %v", out, err)
	}
	s = newStage(t, &chat.Error{Code: chat.CodeBudget})
	s.Models = append(s.Models, agent.Model{Name: "q/n", Asker: second})
	if _, err := s.Run(t.Context(), "go"); agent.CodeOf(err) != string(chat.CodeBudget) {
		t.Errorf("an empty purse was taken to another model: %v", err)
	}
}

// Cancelling ends the tools that run.
func TestCancel(t *testing.T) {
	s := newStage(t, calls("change"))
	ctx, cancel := context.WithCancel(t.Context())
	s.box.do = func(ctx context.Context, _ string) (agent.Result, error) {
		cancel()
		<-ctx.Done()
		return agent.Result{}, ctx.Err()
	}
	if _, err := s.Run(ctx, "go"); agent.CodeOf(err) != agent.CodeStopped {
		t.Errorf("error %v", err)
	}
	s.again(t, "Interrupted")
}

// again runs once more on the same transcript, in which the call has the
// given fate, and checks that it is not carried out a second time.
func (s *stage) again(t *testing.T, fate string) {
	t.Helper()
	s.reopen(t)
	s.box.called, s.model.answers, s.model.asked = nil, nil, nil
	if _, err := s.Run(t.Context(), "what happened?"); err != nil {
		t.Fatal(err)
	}
	messages := s.model.asked[0].Messages
	if len(s.box.called) != 0 || len(messages) != 4 || !strings.HasPrefix(messages[2].Text, fate) {
		t.Errorf("called %v, messages %+v", s.box.called, messages)
	}
}

// A crash in the middle of anything leaves a transcript that goes on, with each
// call carried out at most once.
func TestCrash(t *testing.T) {
	s := newStage(t, calls("change"), says("done"))
	if _, err := s.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n") // session, user, assistant, begin, result, assistant
	for cut, fate := range map[int]string{3: "Not done", 4: "Interrupted", 5: "change ok"} {
		for _, torn := range []string{"", `{"type":"mess`} {
			if err := os.WriteFile(s.path, []byte(strings.Join(lines[:cut], "")+torn), 0o600); err != nil {
				t.Fatal(err)
			}
			s.again(t, fate)
		}
	}
}

func TestDamagedTranscript(t *testing.T) {
	for name, text := range map[string]string{
		"another file": "hello\n", "a later version": `{"type":"session","version":99}` + "\n",
		"damage inside": `{"type":"session","version":1}` + "\nnonsense\n" + `{"type":"begin"}` + "\n",
	} {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := agent.OpenTranscript(path, "x"); err == nil {
			t.Errorf("%s: was taken", name)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != text {
			t.Errorf("%s: was changed to %q", name, after)
		}
	}
}

// A long conversation is made shorter in time, keeps the last exchange whole,
// and stays so for the next process.
func TestCompaction(t *testing.T) {
	s := newStage(t)
	for range 12 {
		s.model.answers = append(s.model.answers, calls("look"))
	}
	s.box.do = func(context.Context, string) (agent.Result, error) {
		return agent.Result{Text: strings.Repeat("found it ", 200)}, nil
	}
	s.Models[0].ContextWindow = 4000
	if _, err := s.Run(t.Context(), "find it"); err != nil {
		t.Fatal(err)
	}
	last := s.model.asked[len(s.model.asked)-1].Messages
	if len(last) > 12 || !strings.Contains(last[0].Text, "find it") {
		t.Errorf("%d messages, first %q", len(last), last[0].Text)
	}
	for i, m := range last {
		if m.Role == chat.Tool && (i == 0 || last[i-1].Role == chat.User) {
			t.Errorf("message %d is a result without its call", i)
		}
	}
	before := s.Transcript.Messages()
	s.reopen(t)
	if diff := cmp.Diff(before, s.Transcript.Messages()); diff != "" {
		t.Error(diff)
	}
}

// A model that finds a conversation too long, whose context window is unknown, gets a
// shorter one, once.
func TestShrinksWhatAModelRefuses(t *testing.T) {
	overflow := &chat.Error{Code: chat.CodeContextOverflow, Message: "too long"}
	s := newStage(t)
	for range 6 {
		s.model.answers = append(s.model.answers, calls("look"))
	}
	s.model.answers = append(s.model.answers, overflow, says("done"))
	s.box.do = func(context.Context, string) (agent.Result, error) {
		return agent.Result{Text: strings.Repeat("found it ", 200)}, nil
	}
	out, err := s.Run(t.Context(), "find it")
	if err != nil || out.Text != "done" {
		t.Fatalf("%+v, %v", out, err)
	}
	refused, taken := s.model.asked[6].Messages, s.model.asked[7].Messages
	if len(taken) >= len(refused) || !strings.Contains(taken[0].Text, "find it") {
		t.Errorf("%d messages after %d", len(taken), len(refused))
	}
	s = newStage(t, calls("look"), calls("look"), calls("look"), overflow, overflow, says("never"))
	s.box.do = func(context.Context, string) (agent.Result, error) {
		return agent.Result{Text: strings.Repeat("found it ", 200)}, nil
	}
	if _, err := s.Run(t.Context(), "find it"); agent.CodeOf(err) != agent.CodeOverflow || len(s.model.asked) != 5 {
		t.Errorf("asked %d times: %v", len(s.model.asked), err)
	}
}

// A conversation with a model whose context window is unknown is made shorter too, so
// that what a session has in memory has a bound, however long it goes on.
func TestConversationHasABound(t *testing.T) {
	const turns, size = 60, 60_000
	s := newStage(t)
	for range turns {
		s.model.answers = append(s.model.answers, calls("look"))
	}
	s.model.answers = append(s.model.answers, says("done"))
	s.box.do = func(context.Context, string) (agent.Result, error) {
		return agent.Result{Text: strings.Repeat("x", size)}, nil
	}
	if out, err := s.Run(t.Context(), "find it"); err != nil || out.Text != "done" {
		t.Fatalf("%+v, %v", out, err)
	}
	most := 0
	for _, asked := range s.model.asked {
		sum := 0
		for _, m := range asked.Messages {
			sum += len(m.Text)
		}
		most = max(most, sum)
	}
	if most > 1_500_000 || most < turns*size/4 {
		t.Errorf("%d bytes were asked with at once, of %d that were said", most, turns*size)
	}
}
