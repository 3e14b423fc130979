// Package sse finds the events of a text/event-stream as it passes, without
// changing a byte of it. Lines may end in LF, CR LF or CR, an event may arrive
// in any pieces, and both are bounded.
package sse

import (
	"bytes"
	"errors"
)

// MaxEvent bounds one event, its lines together.
const MaxEvent = 4 << 20

// ErrTooLarge is an event beyond MaxEvent.
var ErrTooLarge = errors.New("an event of the stream is too large")

// Splitter splits a stream into events. The zero value is ready.
type Splitter struct {
	held []byte // the beginning of an event whose end has not come
	from int    // how much of held was searched
}

// Write takes a piece of the stream and calls each for every event that ends in
// it, with all its bytes, the empty line included. The bytes are valid during
// the call only. What remains is kept for the next piece. It stops at the first
// error of each.
func (s *Splitter) Write(piece []byte, each func(event []byte) error) error {
	if len(s.held) > 0 {
		return s.join(piece, each)
	}
	return s.split(piece, each)
}

// join goes on with an event that began in an earlier piece.
func (s *Splitter) join(piece []byte, each func([]byte) error) error {
	s.held = append(s.held, piece...)
	whole := s.held
	start := max(0, s.from-3)
	end := eventEnd(whole[start:])
	if end < 0 {
		s.from = len(whole)
		return s.bounded()
	}
	end += start
	s.held, s.from = nil, 0
	if err := each(whole[:end]); err != nil {
		return err
	}
	rest := whole[end:]
	s.held = whole[:0]
	return s.split(rest, each)
}

// split gives out the events of piece and keeps the rest. Held may overlap
// piece, which lies behind it.
func (s *Splitter) split(piece []byte, each func([]byte) error) error {
	for len(piece) > 0 {
		end := eventEnd(piece)
		if end < 0 {
			break
		}
		if err := each(piece[:end]); err != nil {
			return err
		}
		piece = piece[end:]
	}
	s.held = append(s.held[:0], piece...)
	s.from = len(s.held)
	return s.bounded()
}

func (s *Splitter) bounded() error {
	if len(s.held) > MaxEvent {
		return ErrTooLarge
	}
	return nil
}

// Rest is the beginning of an event that has not ended.
func (s *Splitter) Rest() []byte { return s.held }

// eventEnd returns where the first event of in ends, behind its empty line; -1
// if it does not. A CR at the very end is not taken for a line end: an LF that
// belongs to it may follow.
func eventEnd(in []byte) int {
	if bytes.IndexByte(in, '\r') < 0 {
		if i := bytes.Index(in, []byte("\n\n")); i >= 0 {
			return i + 2
		}
		return -1
	}
	return eventEndCR(in)
}

// eventEndCR is the same for streams with other line ends.
func eventEndCR(in []byte) int {
	for i := 0; i < len(in); {
		next := lineEnd(in, i)
		if next < 0 {
			return -1
		}
		if after := lineBreak(in, next); after > next {
			return after
		}
		i = next
	}
	return -1
}

// lineEnd returns where the line that begins at i ends, behind its break.
func lineEnd(in []byte, i int) int {
	at := bytes.IndexAny(in[i:], "\r\n")
	if at < 0 {
		return -1
	}
	if next := lineBreak(in, i+at); next > i+at {
		return next
	}
	return -1
}

// lineBreak returns where the line break at i ends; i if there is none, or if
// only more of the stream can tell.
func lineBreak(in []byte, i int) int {
	switch {
	case i >= len(in):
		return i
	case in[i] == '\n':
		return i + 1
	case in[i] == '\r' && i+1 < len(in) && in[i+1] == '\n':
		return i + 2
	case in[i] == '\r' && i+1 < len(in):
		return i + 1
	}
	return i
}

// Data appends the data of an event to dst: the values of its data lines,
// joined by LF. An event without data gives nothing. When there is one line
// only, as always with models, the result lies in event and nothing is copied.
func Data(dst, event []byte) []byte {
	var data []byte
	lines := 0
	hasCR := bytes.IndexByte(event, '\r') >= 0
	for len(event) > 0 {
		end := bytes.IndexByte(event, '\n')
		if hasCR {
			end = bytes.IndexAny(event, "\r\n")
		}
		line := event
		if end >= 0 {
			line, event = event[:end], event[end+1:]
		} else {
			event = nil
		}
		value, ok := dataLine(line)
		if !ok {
			continue
		}
		if lines++; lines == 1 {
			data = value
			continue
		}
		if lines == 2 {
			dst = append(dst, data...)
		}
		dst = append(append(dst, '\n'), value...)
		data = dst
	}
	return data
}

func dataLine(line []byte) ([]byte, bool) {
	value, ok := bytes.CutPrefix(line, []byte("data"))
	if !ok {
		return nil, false
	}
	if len(value) == 0 {
		return value, true
	}
	if value[0] != ':' {
		return nil, false
	}
	return bytes.TrimPrefix(value[1:], []byte(" ")), true
}

// Reset begins another stream, in the same memory.
func (s *Splitter) Reset() { s.held, s.from = s.held[:0], 0 }
