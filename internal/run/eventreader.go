package run

import (
	"bytes"
	"io"
	"sync"
)

// EventReader turns the output of a program into events, as it is written. The
// program is hostile: its events are bounded, and of a type that only the runner
// emits there are none.
type EventReader struct {
	mu       sync.Mutex // standard output and error arrive concurrently
	emit     func(Event)
	progress progress
	out, err *lineWriter
}

// NewEventReader returns the reader of a program that prints the named stream on
// standard output; "" is none. emit is called for one event at a time.
func NewEventReader(stream string, emit func(Event)) (*EventReader, error) {
	read, err := streamReaderOf(stream)
	if err != nil {
		return nil, err
	}
	return newEventReader(&Variant{Stream: read}, emit, io.Discard), nil
}

// newEventReader returns the reader of a variant's program. What it prints on
// standard error, but for events, is written to rest.
func newEventReader(v *Variant, emit func(Event), rest io.Writer) *EventReader {
	r := &EventReader{emit: emit}
	r.out, r.err = &lineWriter{}, &lineWriter{long: rest}
	if v.Stream != nil {
		r.out.line = func(line []byte) { r.stdoutLine(v.Stream, line) }
	}
	r.err.line = func(line []byte) {
		if v.Event == nil || !r.stderrEvent(v.Event, line) {
			_, _ = rest.Write(append(line, '\n'))
		}
		if v.Event == nil {
			r.stderrLog(line)
		}
	}
	return r
}

// Stdout returns the writer for the program's standard output.
func (r *EventReader) Stdout() io.Writer { return r.out }

// Stderr returns the writer for the program's standard error.
func (r *EventReader) Stderr() io.Writer { return r.err }

// Flush reads a last line that was not ended.
func (r *EventReader) Flush() {
	r.out.flush()
	r.err.flush()
}

func (r *EventReader) stdoutLine(read streamReader, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range read(line) {
		size := len(e.Text)
		if e.Call != nil {
			size += len(e.Call.Args) + len(e.Call.Name) + len(e.Call.ID)
		}
		r.progress.matchCall(&e)
		r.admit(e, size)
	}
}

// stderrEvent reports whether a line of standard error is an event.
func (r *EventReader) stderrEvent(read func([]byte) (Event, bool), line []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := read(line)
	if ok {
		r.admit(e, len(line))
	}
	return ok
}

// stderrLog makes a line of a program without events on standard error a log event.
func (r *EventReader) stderrLog(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(line) > 0 {
		e := logged(string(line))
		r.admit(e, len(e.Text))
	}
}

func (r *EventReader) admit(e Event, size int) {
	if r.progress.admit(&e, size) {
		r.emit(e)
	}
}

// maxLine bounds a line that is read.
const maxLine = 256 << 10

// lineWriter calls line with every line that is written to it. A line that is too
// long goes to long instead, where that is set.
type lineWriter struct {
	line func([]byte) // nil: lines are not read
	long io.Writer
	part []byte // of a line that has not ended
	over bool   // the line is too long
}

// Write never fails.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	if w.line == nil {
		return n, nil
	}
	for len(p) > 0 {
		p = w.take(p)
	}
	return n, nil
}

// take takes what belongs to the line that has begun, and returns the rest.
func (w *lineWriter) take(p []byte) []byte {
	line, rest, ended := bytes.Cut(p, []byte{'\n'})
	w.part = append(w.part, line...)
	if len(w.part) > maxLine {
		w.over = true
	}
	switch {
	case w.over:
		w.spill(ended)
	case ended:
		w.line(w.part)
		w.part = w.part[:0]
	}
	return rest
}

// spill passes on a part of a line that is too long.
func (w *lineWriter) spill(ended bool) {
	if ended {
		w.part = append(w.part, '\n')
	}
	if w.long != nil {
		_, _ = w.long.Write(w.part)
	}
	w.part, w.over = w.part[:0], !ended
}

// flush ends a line that has begun.
func (w *lineWriter) flush() {
	if len(w.part) > 0 && w.line != nil {
		w.line(w.part)
	}
	w.part, w.over = nil, false
}
