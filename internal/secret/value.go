package secret

import (
	"encoding"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
)

// Redacted is what a secret prints as.
const Redacted = "[redacted]"

// Value is a secret. The zero Value is empty. Copies share the text, so Wipe
// empties all of them.
type Value struct{ text *[]byte }

// New returns a Value of text, which it keeps a copy of.
func New(text string) Value {
	b := []byte(text)
	return Value{&b}
}

// Reveal returns the secret's text.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return string(*v.text)
}

// Append appends the secret's text to b, without a string in between that
// cannot be wiped.
func (v Value) Append(b []byte) []byte {
	if v.text == nil {
		return b
	}
	return append(b, *v.text...)
}

// IsEmpty reports whether there is no secret.
func (v Value) IsEmpty() bool { return v.text == nil || len(*v.text) == 0 }

// Equal compares two secrets.
func (v Value) Equal(w Value) bool { return v.Reveal() == w.Reveal() }

// Wipe overwrites the text. Copies that Reveal and Append gave are not reached.
func (v Value) Wipe() {
	if v.text == nil {
		return
	}
	clear(*v.text)
	runtime.KeepAlive(v.text)
	*v.text = nil
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
