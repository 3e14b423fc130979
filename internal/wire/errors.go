package wire

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrProtocol marks what no honest peer would send. It closes the wire.
var ErrProtocol = errors.New("protocol violation")

// Code is the kind of a failure that the other side reports.
type Code string

// The codes. A reader treats one it does not know as CodeInternal.
const (
	CodeInvalid       Code = "invalid"        // the request makes no sense
	CodeUnknownOp     Code = "unknown_op"     // this build does not have the operation
	CodeVersion       Code = "version"        // no protocol version in common
	CodeStale         Code = "stale"          // the epoch was superseded
	CodeTooMany       Code = "too_many"       // a limit of this package is reached
	CodeNotFound      Code = "not_found"      // no such program: exit status 127
	CodeNotExecutable Code = "not_executable" // there, but cannot be run: 126
	CodeNoDirectory   Code = "no_directory"   // the working directory cannot be entered
	CodeExhausted     Code = "exhausted"      // no processes, memory or descriptors left
	CodeExists        Code = "exists"         // the process id is taken
	CodeNoProcess     Code = "no_process"     // no such process id
	CodeOver          Code = "over"           // the process that must run does not
	CodeUnsupported   Code = "unsupported"    // not possible in this sandbox
	CodeNoFeature     Code = "no_feature"     // the guest does not have a feature that the request needs
	CodeStuck         Code = "stuck"          // processes are left that could not be ended
	CodeInternal      Code = "internal"
)

// Error is a failure as it travels over the wire.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Subject Text   `json:"subject,omitempty"` // the file, if there are many
}

// Error returns the message. The code is for programs.
func (e *Error) Error() string { return e.Message }

// Fail makes an Error.
func Fail(code Code, message string) *Error {
	return &Error{Code: code, Message: Printable(message)}
}

// AsError finds the Error in err, or wraps err as an internal one.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return Fail(CodeInternal, err.Error())
}

// Printable makes text from the other side safe to show: at most MaxMessage
// bytes, valid UTF-8, and no control characters that a terminal would obey.
func Printable(s string) string {
	if len(s) > MaxMessage {
		s = s[:MaxMessage]
	}
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Cf) {
			return '?'
		}
		return r
	}, s)
}
