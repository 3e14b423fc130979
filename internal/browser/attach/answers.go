package attach

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// FromBrowser decides about an answer or an event. An error ends the connection.
func (f *Filter) FromBrowser(data []byte) (*Output, error) {
	m, err := parse(data, maxAnswerDepth)
	if err != nil {
		return nil, fmt.Errorf("the browser sent %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.ID != nil {
		return f.answer(m, data)
	}
	if m.SessionID != "" && !f.sessions[m.SessionID] || m.Method == "" {
		return &Output{}, nil // of a session that was left, or a complaint about no call
	}
	if !methodForm.MatchString(m.Method) {
		return nil, errors.New("the browser sent an event without the name of a method")
	}
	return f.event(m, data)
}

// answer passes on the answer to a call that waits for it.
func (f *Filter) answer(m *message, data []byte) (*Output, error) {
	if *m.ID > maxID && *m.ID <= f.lastOwn {
		return &Output{}, nil
	}
	call := f.calls[*m.ID]
	switch {
	case call == nil && m.SessionID != "" && !f.sessions[m.SessionID]:
		return &Output{}, nil // its session was left before
	case call == nil:
		return nil, errors.New("the browser sent an answer to a call that was not made")
	case m.SessionID != call.SessionID && (m.SessionID != "" || m.Error == nil): // without a session: it is gone
		return nil, errors.New("the browser sent an answer for another session")
	}
	delete(f.calls, *m.ID)
	if m.Result == nil {
		return &Output{ToProgram: data}, nil
	}
	return f.result(call.Method, call.Params, m, data)
}

// result passes on the answer to a call that succeeded. What it says about contexts of
// other programs is left out.
func (f *Filter) result(method string, params jsontext.Value, m *message, data []byte) (*Output, error) {
	var err error
	switch method {
	case "Target.createBrowserContext":
		err = f.madeContext(m.Result)
	case "Target.disposeBrowserContext":
		err = f.removedContext(params)
	case "Target.getTargets":
		data, err = f.withoutForeign(m, "targetInfos", f.isForeignTarget)
	case "Target.getBrowserContexts":
		data, err = f.withoutForeign(m, "browserContextIds", f.isForeignContext)
	}
	if err != nil {
		return nil, err
	}
	return &Output{ToProgram: data}, nil
}

func (f *Filter) madeContext(result jsontext.Value) error {
	var made struct {
		ID string `json:"browserContextId"`
	}
	if err := decode(result, &made); err != nil || made.ID == "" || len(made.ID) > maxSessionID {
		return errors.New("the browser sent a browser context without an id")
	}
	if !f.contexts.add(made.ID, f) {
		return fmt.Errorf("the program made more than %d browser contexts", maxContexts)
	}
	return nil
}

func (f *Filter) removedContext(call jsontext.Value) error {
	var p params
	if err := decode(call, &p); err != nil {
		return err
	}
	f.contexts.remove(p.BrowserContextID, f)
	return nil
}

// isForeignTarget reports whether a target is another program's, or the browser's own.
func (f *Filter) isForeignTarget(v jsontext.Value) (bool, error) {
	var info struct {
		Context string `json:"browserContextId"`
		URL     string `json:"url"`
	}
	err := decode(v, &info)
	return f.contexts.isForeign(info.Context, f) || isBrowsers(info.URL), err
}

func (f *Filter) isForeignContext(v jsontext.Value) (bool, error) {
	var id string
	err := decode(v, &id)
	return f.contexts.isForeign(id, f), err
}

// withoutForeign returns an answer without the elements of a list that are another
// program's.
func (f *Filter) withoutForeign(m *message, member string, isForeign func(jsontext.Value) (bool, error)) ([]byte, error) {
	result, list := map[string]jsontext.Value{}, []jsontext.Value{}
	if decode(m.Result, &result) != nil || decode(result[member], &list) != nil {
		return nil, errors.New("the browser sent a list of a wrong form")
	}
	list = slices.DeleteFunc(list, func(v jsontext.Value) bool {
		foreign, err := isForeign(v)
		return err != nil || foreign
	})
	kept, err := encode(list)
	if err != nil {
		return nil, err
	}
	result[member] = kept
	text, err := encode(result)
	if err != nil {
		return nil, err
	}
	m.Result = text
	return encode(m)
}
