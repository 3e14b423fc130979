package attach

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxCalls is how many calls of a program wait for an answer at once.
	MaxCalls = 256
	// maxSessions is how many sessions a program has at once.
	maxSessions = 1000
	// maxContexts is how many browser contexts a program has at once.
	maxContexts = 100
	// maxMethods is how many names of methods are counted by themselves.
	maxMethods = 200
	// otherMethods is the name that the rest is counted by.
	otherMethods = "other"
)

// Filter decides what a program and a browser say to each other.
type Filter struct {
	contexts *Contexts
	staged   func(path string) bool

	mu       sync.Mutex
	calls    map[int64]*message // that wait for an answer
	lastOwn  int64              // the number of the filter's own last call
	sessions map[string]bool
	counts   map[string]int
	refused  map[string]int
}

// NewFilter returns the filter of one program. staged says which files inside may be
// uploaded; nil is none.
func NewFilter(contexts *Contexts, staged func(path string) bool) *Filter {
	return &Filter{
		contexts: contexts, staged: staged, lastOwn: maxID, calls: map[int64]*message{},
		sessions: map[string]bool{}, counts: map[string]int{}, refused: map[string]int{},
	}
}

// Output is what follows from a message; each part may be empty.
type Output struct {
	ToBrowser [][]byte
	ToProgram []byte
}

// FromProgram decides about a call. An error ends the connection.
func (f *Filter) FromProgram(data []byte) (*Output, error) {
	m, err := parseCall(data)
	if err != nil {
		return nil, fmt.Errorf("the program sent %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[*m.ID] != nil {
		return nil, errors.New("the program sent a call with the id of one that waits for its answer")
	}
	switch err := f.judge(m); {
	case m.SessionID != "" && !f.sessions[m.SessionID]:
		return f.refuse(m, "this connection has no such session")
	case err != nil:
		return f.refuse(m, err.Error())
	case len(f.calls) >= MaxCalls:
		return f.refuse(m, "too many calls wait for the browser")
	case answeredMethods[m.Method]:
		count(f.counts, m.Method)
		return &Output{ToProgram: answerTo(m, struct{}{}, nil)}, nil
	}
	return f.pass(m)
}

func (f *Filter) refuse(m *message, why string) (*Output, error) {
	count(f.refused, m.Method)
	return &Output{ToProgram: refuse(m, why)}, nil
}

// pass writes a call anew for the browser.
func (f *Filter) pass(m *message) (*Output, error) {
	if m.Method == "Target.createBrowserContext" {
		m.Params = jsontext.Value(`{"disposeOnDetach":true}`) // what else it may say was judged to be empty
	}
	text, err := encode(m)
	if err != nil {
		return nil, err
	}
	count(f.counts, m.Method)
	f.calls[*m.ID] = &message{Method: m.Method, SessionID: m.SessionID, Params: contextOf(m)}
	return &Output{ToBrowser: [][]byte{text}}, nil
}

// contextOf returns the parameters of a call that are needed when its answer comes.
func contextOf(m *message) jsontext.Value {
	if m.Method == "Target.disposeBrowserContext" {
		return m.Params
	}
	return nil
}

func count(counts map[string]int, method string) {
	if _, known := counts[method]; !known && len(counts) >= maxMethods {
		method = otherMethods
	}
	counts[method]++
}

// Counts returns how often each method was passed on and refused.
func (f *Filter) Counts() (passed, refused map[string]int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts, f.refused
}

// Close forgets the browser contexts of the program, which the browser removes with its
// connection.
func (f *Filter) Close() { f.contexts.remove("", f) }
