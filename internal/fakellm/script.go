package fakellm

import (
	"fmt"
	"slices"
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
	Header map[string]string // of the answer
	// Cut, if not 0, breaks the connection of a stream after so many events.
	Cut int
	// Hold, if not nil, holds a stream back after HoldAfter events, until it is
	// closed.
	Hold      <-chan struct{} `json:"-"`
	HoldAfter int             `json:"-"`
	// Pace, if not nil, gives one element for each event of a stream, and is closed to
	// let the rest pass.
	Pace <-chan struct{} `json:"-"`
	// Pieces is in how many parts a streamed text comes; 0 is 3.
	Pieces int `json:"-"`
	// First is what the first requests for this turn get instead of it, one each.
	First []Turn
}

// Call is a call of a tool.
type Call struct {
	ID        string // "": made from the position in the script
	Name      string
	Arguments string // JSON
	Namespace string // of the tool, in the dialect of Responses; "" is none
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

// Player plays a script. It is not safe for concurrent use.
type Player struct {
	Script Script
	Anew   bool        // the script begins again with every message of the user
	asked  map[int]int // how often each turn was asked for
}

// Next finds the answer to a conversation.
func (p *Player) Next(r *Request) (Turn, error) {
	at := r.answers(p.Anew)
	if at >= len(p.Script) {
		return Turn{}, fmt.Errorf("the script is over after %d turns, and this is number %d", len(p.Script), at+1)
	}
	turn, err := p.Script[at].fitting(r.Last())
	if err != nil {
		return Turn{}, fmt.Errorf("turn %d %w", at+1, err)
	}
	if p.asked == nil {
		p.asked = map[int]int{}
	}
	if before := p.asked[at]; !r.Counts && before < len(turn.First) {
		p.asked[at]++
		turn = turn.First[before]
	}
	turn.Calls = named(turn.Calls, at)
	return turn, nil
}

// fitting is the turn that goes with the last message.
func (t Turn) fitting(last string) (Turn, error) {
	for !strings.Contains(last, t.When) {
		if t.Else == nil {
			return Turn{}, fmt.Errorf("expects %q in the last message, which is: %.2000s", t.When, last)
		}
		t = *t.Else
	}
	return t, nil
}

func named(calls []Call, at int) []Call {
	calls = slices.Clone(calls)
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = fmt.Sprintf("call_%d_%d", at+1, i+1)
		}
	}
	return calls
}
