package confined

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"unicode"
)

// Error is what a program said when it failed.
type Error struct {
	Message string // one line, printable
	cause   error
}

func (e *Error) Error() string {
	if e.Message == "" {
		return e.cause.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.cause }

// Exit is the code that the program ended with, and -1 if a signal ended it.
func (e *Error) Exit() int {
	if exit, ok := errors.AsType[*exec.ExitError](e.cause); ok {
		return exit.ExitCode()
	}
	return -1
}

// ErrTooMuch means that a program wrote more than is allowed.
var ErrTooMuch = errors.New("more output than allowed")

// Bounded passes on so many bytes and fails then, which ends the program that
// writes.
type Bounded struct {
	To       io.Writer
	Left     int
	Exceeded bool
}

func (b *Bounded) Write(p []byte) (int, error) {
	if len(p) > b.Left {
		b.Exceeded = true
		return 0, ErrTooMuch
	}
	b.Left -= len(p)
	return b.To.Write(p)
}

// tail keeps the last bytes of what is written.
type tail struct {
	limit int
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if len(t.kept) > t.limit {
		t.kept = t.kept[len(t.kept)-t.limit:]
	}
	return len(p), nil
}

// String is one line that a terminal can show: messages may hold bytes that an
// agent chose.
func (t *tail) String() string {
	line := strings.Join(strings.FieldsFunc(string(t.kept), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.TrimSpace(line))
}
