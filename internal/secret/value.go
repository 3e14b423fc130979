package secret

import (
	"crypto/subtle"
	"encoding"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Redacted is what a secret prints as.
const Redacted = "[redacted]"

// Value is a secret. The zero Value is empty. Copies share the text, so Wipe
// empties all of them.
//
// The text is behind a function because package fmt prints the fields of a
// private field itself, whatever methods its type has.
type Value struct{ text func() *[]byte }

// New returns a Value of text, which it keeps a copy of.
func New(text string) Value {
	b := []byte(text)
	return Value{func() *[]byte { return &b }}
}

func (v Value) bytes() []byte {
	if v.text == nil {
		return nil
	}
	return *v.text()
}

// Reveal returns the secret's text.
func (v Value) Reveal() string { return string(v.bytes()) }

// Append appends the secret's text to b, without a string in between that
// cannot be wiped.
func (v Value) Append(b []byte) []byte { return append(b, v.bytes()...) }

// IsEmpty reports whether there is no secret.
func (v Value) IsEmpty() bool { return len(v.bytes()) == 0 }

// Equal compares two secrets.
func (v Value) Equal(w Value) bool { return subtle.ConstantTimeCompare(v.bytes(), w.bytes()) == 1 }

// Wipe overwrites the text. Copies that Reveal and Append gave are not reached.
// No other goroutine may use the secret at the same time.
func (v Value) Wipe() {
	if v.text == nil {
		return
	}
	clear(*v.text())
	*v.text() = nil
}

// Scrub replaces the secret in a text that came from elsewhere.
func (v Value) Scrub(text string) string {
	if len(v.Reveal()) < minScrub {
		return text
	}
	return strings.ReplaceAll(text, v.Reveal(), Redacted)
}

// minScrub is the length below which a secret is also an everyday word.
const minScrub = 6

// Format hides the secret from every verb of package fmt.
func (Value) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// String hides the secret.
func (Value) String() string { return Redacted }

// GoString hides the secret.
func (Value) GoString() string { return Redacted }

// MarshalText hides the secret from encoders.
func (Value) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// MarshalJSON hides the secret from encoders.
func (Value) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// LogValue hides the secret from logs.
func (Value) LogValue() slog.Value { return slog.StringValue(Redacted) }

var (
	_ fmt.Formatter          = Value{}
	_ encoding.TextMarshaler = Value{}
	_ slog.LogValuer         = Value{}
)
