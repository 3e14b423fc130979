package h1

import (
	"errors"
	"fmt"
)

// The limits of a message.
const (
	// MaxHead bounds the first line and the header fields together.
	MaxHead = 64 << 10
	// MaxFields bounds the number of header fields.
	MaxFields = 100
	// maxChunkDigits bounds the length of one chunk to 4 GiB.
	maxChunkDigits = 8
)

// ErrTruncated is a message that ended before its end.
var ErrTruncated = errors.New("the message ended before its end")

// ErrTooLarge is a body beyond its limit.
var ErrTooLarge = errors.New("the body is too large")

// A ProtocolError is a message that is not accepted. The connection it came
// from is of no further use.
type ProtocolError struct {
	Status int // for the answer
	Reason string
}

func (e *ProtocolError) Error() string { return e.Reason }

func bad(reason string) error { return &ProtocolError{Status: 400, Reason: reason} }

func refuse(status int, format string, args ...any) error {
	return &ProtocolError{Status: status, Reason: fmt.Sprintf(format, args...)}
}
