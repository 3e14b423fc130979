package workspace

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxWarnings is how many warnings one operation returns, however many links
// somebody planted.
const MaxWarnings = 100

// Warning is something that was left undone without failing the operation.
type Warning struct {
	Subject string `json:"subject"` // a file, safe to print
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (w Warning) String() string { return w.Subject + ": " + w.Message }

// Warnings holds at most MaxWarnings.
type Warnings []Warning

func (ws *Warnings) add(w Warning) {
	switch n := len(*ws); {
	case n < MaxWarnings-1:
		*ws = append(*ws, w)
	case n == MaxWarnings-1:
		*ws = append(*ws, Warning{Subject: w.Subject, Message: "and more; the rest is not listed"})
	}
}

func (ws *Warnings) addf(subject, format string, args ...any) {
	ws.add(Warning{Subject: printable(subject), Message: fmt.Sprintf(format, args...)})
}

// printable makes a name from a hostile directory fit for a terminal: as it is
// if it is plain text, otherwise as a quoted string with escapes.
func printable(name string) string {
	if utf8.ValidString(name) && !strings.ContainsFunc(name, needsQuoting) {
		return name
	}
	return strconv.Quote(name)
}

// needsQuoting also covers the backslash and the quote, so that two names never
// print alike.
func needsQuoting(r rune) bool {
	return r == '\\' || r == '"' || !unicode.IsPrint(r)
}
