package confined

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"unicode"
)

// Error is the failure of a program, with its message.
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

// Bounded writes at most Left bytes and then fails, which ends the program.
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

// oneLine is text that is safe on a terminal: messages may hold bytes that an
// agent chose.
func oneLine(text []byte) string {
	line := strings.Join(strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.TrimSpace(line))
}
