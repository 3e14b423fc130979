// Package wiretest records what a guest sends, and replays it, so that hosts can
// be tested against guests of older builds.
//
// A recording is of operations, not of bytes: the request of a stream or a direct
// connection, and what host and guest then sent, in that order. Random ids are
// replaced by those of the host under test.
package wiretest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/atoll-run/atoll/internal/wire"
)

// Recording is what one guest sent.
type Recording struct {
	Guest     string       `json:"guest"` // where it came from
	Welcome   wire.Welcome `json:"welcome"`
	Exchanges []*Exchange  `json:"talks"`
}

// Exchange is one operation.
type Exchange struct {
	Direct  bool            `json:"direct,omitempty"` // over a direct connection
	Request json.RawMessage `json:"request"`
	Events  []Event         `json:"events"`
}

// Event is a frame, or the end of what one side sends.
type Event struct {
	Host bool            `json:"host,omitempty"` // sent by the host, else by the guest
	Type wire.FrameType  `json:"type,omitempty"` // 0: the end
	JSON json.RawMessage `json:"json,omitempty"`
	Data []byte          `json:"data,omitempty"` // if it is not JSON
}

// Read reads a recording.
func Read(path string) (*Recording, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Recording{}
	if err := json.Unmarshal(content, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Write writes it, a line for each event, for people to read.
func (r *Recording) Write(path string) error {
	content, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

func eventOf(host bool, frame wire.Frame) Event {
	e := Event{Host: host, Type: frame.Type}
	if holdsJSON(frame.Type) {
		e.JSON = append(e.JSON, frame.Payload...)
	} else {
		e.Data = append(e.Data, frame.Payload...)
	}
	return e
}

// holdsJSON reports whether frames of a type hold JSON, else they hold bytes.
func holdsJSON(t wire.FrameType) bool {
	switch t {
	case wire.FrameStdin, wire.FrameStdinEOF, wire.FrameStdout, wire.FrameStderr, wire.FrameData, wire.FrameDataEnd:
		return false
	}
	return true
}

// payload is what the frame held.
func (e *Event) payload() []byte {
	if e.JSON == nil {
		return e.Data
	}
	var compact bytes.Buffer // the file is indented
	_ = json.Compact(&compact, e.JSON)
	return compact.Bytes()
}

// write writes a frame of any length.
func write(w io.Writer, t wire.FrameType, payload []byte) error {
	frame := make([]byte, wire.HeaderSize, wire.HeaderSize+len(payload))
	wire.PutHeader(frame, t, len(payload))
	_, err := w.Write(append(frame, payload...))
	return err
}

// reader reads what one side sends over a stream or a direct connection. Requests
// begin with a zero byte, as they are shorter than 16 MiB, and frames do not.
type reader struct{ buffered *bufio.Reader }

func newReader(r io.Reader) *reader { return &reader{bufio.NewReader(r)} }

// request reads a request, if one comes next.
func (r *reader) request() (json.RawMessage, error) {
	first, err := r.buffered.Peek(1)
	if err != nil || first[0] != 0 {
		return nil, err
	}
	var length [4]byte
	if _, err := io.ReadFull(r.buffered, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > wire.MaxRequest {
		return nil, wire.ErrProtocol
	}
	request := make([]byte, n)
	_, err = io.ReadFull(r.buffered, request)
	return request, err
}

// frame reads a frame.
func (r *reader) frame() (wire.Frame, error) {
	var header [wire.HeaderSize]byte
	if _, err := io.ReadFull(r.buffered, header[:]); err != nil {
		return wire.Frame{}, err
	}
	n := binary.BigEndian.Uint32(header[1:])
	if n > wire.MaxData {
		return wire.Frame{}, wire.ErrProtocol
	}
	payload := make([]byte, n)
	_, err := io.ReadFull(r.buffered, payload)
	return wire.Frame{Type: wire.FrameType(header[0]), Payload: payload}, err
}

// ids returns the ids in a request that its host chose.
func ids(request json.RawMessage) []string {
	var parts wire.Request
	if json.Unmarshal(request, &parts) != nil {
		return nil
	}
	switch {
	case parts.Exec != nil:
		return []string{parts.Exec.ID}
	case parts.Attach != nil:
		return []string{parts.Attach.ID}
	case parts.Target != nil:
		return append(parts.Target.IDs, parts.Target.ID)
	case parts.Port != nil:
		return []string{parts.Port.ID}
	}
	return nil
}

// same reports whether two requests are equal, but for such ids.
func same(a, b json.RawMessage) bool {
	return reflect.DeepEqual(nameless(a), nameless(b))
}

func nameless(request json.RawMessage) any {
	var object map[string]any
	if json.Unmarshal(request, &object) != nil {
		return string(request)
	}
	for _, part := range object {
		if fields, ok := part.(map[string]any); ok {
			delete(fields, "id")
			delete(fields, "ids")
		}
	}
	return object
}
