package chat

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxEvent bounds one event of a stream.
const maxEvent = 4 << 20

var errEventTooLarge = errors.New("an event of the stream is too large")

// eventReader reads a stream of server-sent events.
type eventReader struct{ lines *bufio.Scanner }

func newEvents(r io.Reader) *eventReader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 4096), maxEvent)
	return &eventReader{s}
}

// next returns the data of the next event that has some. io.EOF is the end of
// the stream between two events; in the middle of one it is
// io.ErrUnexpectedEOF.
func (e *eventReader) next() ([]byte, error) {
	var data []byte
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if len(line) == 0 {
			if data != nil {
				return data, nil
			}
			continue
		}
		rest, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue // names, ids and comments say nothing that the data does not
		}
		if data != nil {
			data = append(data, '\n')
		}
		if data = append(data, bytes.TrimPrefix(rest, []byte(" "))...); len(data) > maxEvent {
			return nil, errEventTooLarge
		}
		if data == nil {
			data = []byte{}
		}
	}
	switch err := e.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, errEventTooLarge
	case err != nil:
		return nil, err
	case data != nil:
		return nil, io.ErrUnexpectedEOF
	}
	return nil, io.EOF
}

// decode reads the data of an event. Half of a surrogate pair is forgiven:
// providers cut text into chunks without looking.
func decode(data []byte, into any) error {
	return json.Unmarshal(data, into, jsontext.AllowInvalidUTF8(true))
}
