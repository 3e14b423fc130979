package scripted

import (
	"fmt"
	"strings"
)

// Script is what the model says: its first turn answers a conversation without
// an answer in it yet, its second one with one answer, and so on.
type Script []Turn

// Turn is one answer of the model: words, calls of tools, or both.
type Turn struct {
	Text  string
	Calls []Call
	Usage Usage // zero: an estimate
	// When is what the last message, such as a tool's result, must contain for
	// this turn; if it does not, Else is the turn. Without Else the request is
	// answered with an error that shows the message.
	When string
	Else *Turn
	// Status, if not 0, answers with this HTTP status and Text as the error.
	Status int
}

// Call is a call of a tool.
type Call struct {
	ID        string // "": made from the position in the script
	Name      string
	Arguments string // JSON
}

// Usage is what a turn costs, in tokens.
type Usage struct {
	Prompt, Completion int
	Cached             int // of Prompt
}

// Then is the script s followed by more turns.
func (s Script) Then(turns ...Turn) Script { return append(append(Script(nil), s...), turns...) }

// Say is a turn of words.
func Say(text string) Turn { return Turn{Text: text} }

// Use is a turn that calls one tool.
func Use(tool, arguments string) Turn { return Turn{Calls: []Call{{Name: tool, Arguments: arguments}}} }

// turn finds the answer to a conversation.
func (s Script) turn(r *Request, anew bool) (Turn, error) {
	at := r.answers(anew)
	if at >= len(s) {
		return Turn{}, fmt.Errorf("the script is over after %d turns, and this is number %d", len(s), at+1)
	}
	turn, last := s[at], r.Last()
	for !strings.Contains(last, turn.When) {
		if turn.Else == nil {
			return Turn{}, fmt.Errorf("turn %d expects %q in the last message, which is: %.2000s", at+1, turn.When, last)
		}
		turn = *turn.Else
	}
	calls := append([]Call(nil), turn.Calls...)
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = fmt.Sprintf("call_%d_%d", at+1, i+1)
		}
	}
	turn.Calls = calls
	return turn, nil
}
