package attach

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// targetEvent are the parameters of events about targets.
type targetEvent struct {
	SessionID  string `json:"sessionId"`
	TargetInfo struct {
		Context string `json:"browserContextId"`
		URL     string `json:"url"`
	} `json:"targetInfo"`
}

// isBrowsers reports whether an address is of a page that is the browser's own, such as a
// part of its window: its scripts have powers that no page has.
func isBrowsers(url string) bool {
	for _, scheme := range []string{"chrome:", "chrome-untrusted:", "devtools:"} {
		if strings.HasPrefix(url, scheme) {
			return true
		}
	}
	return false
}

// event passes on an event, unless it is about a page of another program or of the browser.
func (f *Filter) event(m *message, data []byte) (*Output, error) {
	switch m.Method {
	case "Target.attachedToTarget", "Target.detachedFromTarget", "Target.targetCreated", "Target.targetInfoChanged":
	default:
		return &Output{ToProgram: data}, nil
	}
	var e targetEvent
	if err := decode(m.Params, &e); err != nil || len(e.SessionID) > maxSessionID {
		return nil, fmt.Errorf("the browser sent the event %s in a wrong form", m.Method)
	}
	isForeign := f.contexts.isForeign(e.TargetInfo.Context, f) || isBrowsers(e.TargetInfo.URL)
	switch {
	case m.Method == "Target.attachedToTarget":
		return f.attached(m, &e, isForeign, data)
	case m.Method == "Target.detachedFromTarget":
		return f.detached(&e, data), nil
	case isForeign:
		return &Output{}, nil
	}
	return &Output{ToProgram: data}, nil
}

// attached gives the program a session, or leaves one of another program's page, which
// may wait for it.
func (f *Filter) attached(m *message, e *targetEvent, isForeign bool, data []byte) (*Output, error) {
	switch {
	case e.SessionID == "":
		return nil, errors.New("the browser sent a session without a name")
	case isForeign:
		return f.leave(m, e.SessionID)
	case len(f.sessions) >= maxSessions:
		return nil, fmt.Errorf("more than %d sessions", maxSessions)
	}
	f.sessions[e.SessionID] = true
	return &Output{ToProgram: data}, nil
}

// leave lets a page of another program go on and leaves its session.
func (f *Filter) leave(m *message, session string) (*Output, error) {
	params, err := encode(map[string]string{"sessionId": session})
	if err != nil {
		return nil, err
	}
	out := &Output{}
	for _, call := range []*message{
		{Method: "Runtime.runIfWaitingForDebugger", SessionID: session},
		{Method: "Target.detachFromTarget", SessionID: m.SessionID, Params: jsontext.Value(params)},
	} {
		f.lastOwn++
		id := f.lastOwn
		call.ID = &id
		text, err := encode(call)
		if err != nil {
			return nil, err
		}
		out.ToBrowser = append(out.ToBrowser, text)
	}
	return out, nil
}

// detached ends a session. Its calls get no answer any more. The program is not told of
// sessions that it did not have.
func (f *Filter) detached(e *targetEvent, data []byte) *Output {
	if !f.sessions[e.SessionID] {
		return &Output{}
	}
	delete(f.sessions, e.SessionID)
	maps.DeleteFunc(f.calls, func(_ int64, call *message) bool { return call.SessionID == e.SessionID })
	return &Output{ToProgram: data}
}
