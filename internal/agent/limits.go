package agent

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/atoll-run/atoll/internal/agent/chat"
)

// Limits end a run that does not end by itself. Money is limited where it is
// spent, by the proxy: its refusal ends the run with chat.CodeBudget.
type Limits struct {
	Turns    int           // answers of the model; default 100
	Time     time.Duration // default 10 minutes
	Tokens   int64         // of all answers together; default 20 million
	Parallel int           // tool calls at once; default 8
	// MaxMessage bounds the question, in bytes; default 4 MiB.
	MaxMessage int
	// Tries is how often one model is asked the same thing; default 3.
	Tries int
	// Pause is waited before the second try, twice as long before the third;
	// default one second.
	Pause time.Duration
}

// Defaults of the limits.
const (
	DefaultTurns      = 100
	DefaultTime       = 10 * time.Minute
	DefaultTokens     = 20_000_000
	DefaultMaxMessage = 4 << 20
)

func (l Limits) withDefaults() Limits {
	l.Turns = cmp.Or(l.Turns, DefaultTurns)
	l.Time = cmp.Or(l.Time, DefaultTime)
	l.Tokens = cmp.Or(l.Tokens, DefaultTokens)
	l.Parallel = cmp.Or(l.Parallel, 8)
	l.MaxMessage = cmp.Or(l.MaxMessage, DefaultMaxMessage)
	l.Tries = cmp.Or(l.Tries, 3)
	l.Pause = cmp.Or(l.Pause, time.Second)
	return l
}

// Codes of what ends a run, beside those of package chat.
const (
	CodeTurns    = "turn_limit"
	CodeTime     = "timeout"
	CodeTokens   = "token_limit"
	CodeMessage  = "prompt_too_large"
	CodeEmpty    = "prompt_empty"
	CodeNoText   = "prompt_not_text"
	CodeOverflow = string(chat.CodeContextOverflow)
	CodeTool     = "tool_failed"
	CodeRecord   = "transcript_failed"
	CodeStopped  = "cancelled"
)

// Error ends a run.
type Error struct {
	Code string
	Text string
	Err  error
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.Err }

// CheckMessage refuses a message that is too large or no text. Run does so too; this
// is for callers that make a sandbox first.
func (l Limits) CheckMessage(message string) error {
	l = l.withDefaults()
	switch {
	case strings.TrimSpace(message) == "":
		return &Error{Code: CodeEmpty, Text: "the message is empty"}
	case len(message) > l.MaxMessage:
		return &Error{Code: CodeMessage, Text: fmt.Sprintf("the message has %d bytes, more than %d", len(message), l.MaxMessage)}
	case !utf8.ValidString(message) || strings.ContainsRune(message, 0):
		return &Error{Code: CodeNoText, Text: "the message is no text: it is not UTF-8, or has zero bytes"}
	}
	return nil
}

func (l *Limits) check(turns int, used chat.Usage) error {
	switch {
	case turns >= l.Turns:
		return &Error{Code: CodeTurns, Text: fmt.Sprintf("the model was asked %d times and is not done", turns)}
	case used.Total() >= l.Tokens:
		return &Error{Code: CodeTokens, Text: fmt.Sprintf("%d tokens are used up, of %d", used.Total(), l.Tokens)}
	}
	return nil
}
