// Package secretvalue has the values of a file that must never be printed.
package secretvalue

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// redacted is what a secret prints as, in every format.
const redacted = "[redacted]"

// Secret is a value that must never be printed, or a reference to where it is
// kept. Its text is reached only through Reveal.
type Secret struct {
	value string
	Ref   *SecretRef
}

// SecretRef says where a secret is kept: in a variable of the environment, a
// file, a program's output or a store.
type SecretRef struct {
	Source   string `json:"source" required:"yes" enum:"env|file|exec|store" doc:"Where the secret is kept."`
	Provider string `json:"provider,omitempty" check:"line" doc:"Which of the providers of that kind."`
	ID       string `json:"id" required:"yes" check:"line" doc:"Name of the secret there."`
}

// Forms returns a value of each form that the file may have.
func (Secret) Forms() []any { return []any{"", SecretRef{}} }

// NewSecret is a secret that is at hand.
func NewSecret(value string) *Secret { return &Secret{value: value} }

// Reveal returns the text of a secret that the file holds itself.
func (s Secret) Reveal() string { return s.value }

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return redacted }

// MarshalJSON hides the secret; a reference is not one.
func (s Secret) MarshalJSON() ([]byte, error) {
	if s.Ref != nil {
		return json.Marshal(s.Ref)
	}
	return jsontext.AppendQuote(nil, redacted)
}

// UnmarshalJSON reads a string or a reference.
func (s *Secret) UnmarshalJSON(b []byte) error {
	*s = Secret{}
	switch jsontext.Value(b).Kind() {
	case '"':
		return json.Unmarshal(b, &s.value)
	case '{':
		return json.Unmarshal(b, &s.Ref)
	}
	return errors.New("expected a string or a reference to a secret")
}
