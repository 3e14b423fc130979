package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// MaxDepth bounds the nesting of frames from a gateway.
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

// errGarbled is a frame that cannot be decoded; the connection cannot continue.
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
		return nil, errGarbled // its text is not repeated: it may hold anything
	}
	return f, nil
}

// nestedDeeper reports whether a document is nested deeper than a number, before a
// recursive decoder reads it.
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

// maxErrorText bounds the gateway's text in an error.
const maxErrorText = 500

// failureOf returns a gateway's error, bounded and never without text.
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

// Detail returns the code in an error's details.
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
