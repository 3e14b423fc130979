package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxDepth is how deep what a gateway sends may be nested.
const MaxDepth = 128

// frame is any frame of a gateway: a response or an event.
type frame struct {
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	OK      bool            `json:"ok"`
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
	Error   *Error          `json:"error"`
}

// errGarbled is a frame that cannot be read: whatever follows may belong to it.
var errGarbled = errors.New("the gateway sends what is no frame")

func readFrame(ctx context.Context, conn *Conn) (*frame, error) {
	data, err := conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	return parseFrame(data)
}

func parseFrame(data []byte) (*frame, error) {
	if nestedDeeper(data, MaxDepth) {
		return nil, fmt.Errorf("%w: it is nested deeper than %d", errGarbled, MaxDepth)
	}
	f := &frame{}
	if err := json.Unmarshal(data, f); err != nil || f.Type == "" {
		return nil, errGarbled // what it says may be anything: it is not repeated
	}
	return f, nil
}

// nestedDeeper reports whether a document is nested deeper than a number, before
// anything recursive looks at it.
func nestedDeeper(data []byte, most int) bool {
	depth, inside := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case inside:
		case c == '{', c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

func encodeRequest(id, method string, params any) ([]byte, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	data, err := json.Marshal(&Request{Type: TypeRequest, ID: id, Method: method, Params: text})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if len(data) > MaxPayload {
		return nil, fmt.Errorf("%s: %d bytes are more than a gateway takes (%d)", method, len(data), MaxPayload)
	}
	return data, nil
}

// maxErrorText bounds what of a gateway's words is in an error.
const maxErrorText = 500

// failureOf is what a gateway's error is to us: bounded, and never without a
// word.
func failureOf(e *Error) *Error {
	if e == nil {
		return &Error{Code: CodeUnavailable, Message: "the gateway gave no reason"}
	}
	kept := *e
	kept.Code, kept.Message = shorten(e.Code), shorten(e.Message)
	if len(kept.Details) > 4*maxErrorText {
		kept.Details = nil
	}
	return &kept
}

// Detail is the code in an error's details.
func (e *Error) Detail() string {
	var d struct {
		Code   string `json:"code"`
		Reason string `json:"reason"`
	}
	if len(e.Details) == 0 || json.Unmarshal(e.Details, &d) != nil {
		return ""
	}
	if d.Code == "" {
		return d.Reason
	}
	return d.Code
}
