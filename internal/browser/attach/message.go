package attach

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

const (
	// MaxMessage is the largest message of either side.
	MaxMessage = 32 << 20
	// MaxDepth is how deep the JSON of a program may be nested.
	MaxDepth = 64
	// maxAnswerDepth is how deep that of the browser may be: it is the depth of trees of
	// documents, which Chromium itself cuts at a few hundred.
	maxAnswerDepth = 1000
	// maxID is the end of the numbers for a program's calls; the filter's own begin there.
	maxID = 1 << 30
	// maxSessionID bounds the name of a session.
	maxSessionID = 128
)

// methodForm is what the name of a method looks like.
var methodForm = lazyregexp.New(`^[A-Z][A-Za-z]{0,40}\.[a-z][A-Za-z]{0,80}$`)

// message is what both sides send.
type message struct {
	ID        *int64         `json:"id,omitzero"`
	Method    string         `json:"method,omitzero"`
	Params    jsontext.Value `json:"params,omitzero"`
	SessionID string         `json:"sessionId,omitzero"`
	Result    jsontext.Value `json:"result,omitzero"`
	Error     jsontext.Value `json:"error,omitzero"`
}

// lenient accepts half surrogate pairs, which JavaScript's strings may have.
var lenient = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.RejectUnknownMembers(false))

// decode reads JSON without members that occur twice, so that the browser reads the same.
func decode(data []byte, into any) error { return json.Unmarshal(data, into, lenient) }

func encode(value any) ([]byte, error) { return json.Marshal(value, lenient) }

// parse reads a message that is nested no deeper than depth.
func parse(data []byte, depth int) (*message, error) {
	if len(data) > MaxMessage {
		return nil, fmt.Errorf("a message of more than %d bytes", MaxMessage)
	}
	if err := checkDepth(data, depth); err != nil {
		return nil, err
	}
	var m message
	if err := decode(data, &m); err != nil {
		return nil, errors.New("what is no message of the DevTools protocol")
	}
	if len(m.SessionID) > maxSessionID {
		return nil, errors.New("a session with a name that is too long")
	}
	return &m, nil
}

// parseCall reads a call of a program.
func parseCall(data []byte) (*message, error) {
	m, err := parse(data, MaxDepth)
	switch {
	case err != nil:
		return nil, err
	case m.ID == nil || *m.ID < 0 || *m.ID >= maxID:
		return nil, fmt.Errorf("a call whose id is no number below %d", maxID)
	case !methodForm.MatchString(m.Method):
		return nil, errors.New("a call without the name of a method")
	case m.Result != nil || m.Error != nil:
		return nil, errors.New("an answer, where calls are expected")
	case m.Params != nil && m.Params.Kind() != '{':
		return nil, errors.New("a call whose params are no object")
	}
	return m, nil
}

// checkDepth refuses JSON that is nested too deep or has something after its end.
func checkDepth(data []byte, most int) error {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowInvalidUTF8(true))
	for {
		_, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errors.New("what is no JSON")
		case d.StackDepth() > most:
			return fmt.Errorf("JSON that is nested deeper than %d", most)
		}
	}
}

// answerTo returns the answer to a call, made by the filter.
func answerTo(m *message, result, failure any) []byte {
	answer := struct {
		ID        int64  `json:"id"`
		Result    any    `json:"result,omitzero"`
		Error     any    `json:"error,omitzero"`
		SessionID string `json:"sessionId,omitzero"`
	}{*m.ID, result, failure, m.SessionID}
	text, err := encode(answer)
	if err != nil {
		return nil // all of it is ours
	}
	return text
}

// refusalCode is the code of the protocol for a server's own errors.
const refusalCode = -32000

// refuse returns the answer to a call that is refused.
func refuse(m *message, why string) []byte {
	return answerTo(m, nil, struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{refusalCode, why})
}
