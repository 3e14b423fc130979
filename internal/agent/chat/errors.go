package chat

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Code names what went wrong, for programs.
type Code string

// The codes.
const (
	CodeUnreachable     Code = "model_unreachable"   // no connection, or it broke before the answer
	CodeCut             Code = "model_answer_cut"    // the answer ended in the middle
	CodeStalled         Code = "model_stalled"       // nothing came for too long
	CodeGarbage         Code = "model_bad_answer"    // not the protocol
	CodeTooLarge        Code = "model_answer_large"  // beyond a limit of ours
	CodeContextOverflow Code = "context_overflow"    // the conversation does not fit the model
	CodeUnauthorized    Code = "model_unauthorized"  // key or permission
	CodeBudget          Code = "budget_exceeded"     // the money or the tokens are spent
	CodeRateLimited     Code = "model_rate_limited"  // later
	CodeUnavailable     Code = "model_unavailable"   // the provider's own failure
	CodeRejected        Code = "model_rejected_call" // the request itself
)

// Error is a question that got no whole answer.
type Error struct {
	Code    Code
	Status  int           // of HTTP, 0 if there was none
	After   time.Duration // the provider's wish, before another try
	Message string        // one line, already safe to show
	Err     error
}

func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model: HTTP %d: %s", e.Status, e.Message)
	}
	return "model: " + e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same question may be asked again: nothing of an
// answer was used, and the reason may pass.
func (e *Error) Retryable() bool {
	switch e.Code {
	case CodeUnreachable, CodeRateLimited, CodeUnavailable, CodeCut, CodeStalled:
		return true
	}
	return false
}

// NextModel reports whether another model may succeed where this one did not.
func (e *Error) NextModel() bool {
	return e.Retryable() || e.Code == CodeUnauthorized || e.Code == CodeGarbage
}

// codeOf reads a status and the words that came with it.
func codeOf(status int, words string) Code {
	words = strings.ToLower(words)
	switch {
	case containsAny(words, "context_length_exceeded", "maximum context length", "prompt is too long", "context window"):
		return CodeContextOverflow
	case status == 402, containsAny(words, "budget", "insufficient_quota", "credit balance"):
		return CodeBudget
	case status == 401, status == 403, strings.Contains(words, "upstream_refused"):
		return CodeUnauthorized
	case status == 429:
		return CodeRateLimited
	case status >= 500, status == 408:
		return CodeUnavailable
	}
	return CodeRejected
}

// codeInStream reads the words of an error in the middle of an answer. The proxy
// says so when a provider's connection broke.
func codeInStream(words string) Code {
	if containsAny(strings.ToLower(words), "upstream_failed", "broke off") {
		return CodeCut
	}
	return codeOf(500, words)
}

func containsAny(s string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// maxMessage bounds what is shown of a provider's words.
const maxMessage = 400

// oneLine makes foreign words safe to print: one line of printable characters.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		cut := maxMessage
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return s
}
