package wire

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Text is a string that may hold any bytes, as paths and arguments on Linux
// do. In JSON it is a string when it is valid UTF-8, else {"b64": …}: JSON alone
// would silently replace what it cannot express.
type Text string

type rawText struct {
	Base64 []byte `json:"b64"`
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(rawText{[]byte(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var raw rawText
	if err := json.Unmarshal(b, &raw); err != nil {
		return errors.New("text is neither a string nor {b64}")
	}
	*t = Text(raw.Base64)
	return nil
}

// Texts converts strings.
func Texts(in []string) []Text {
	out := make([]Text, len(in))
	for i, s := range in {
		out[i] = Text(s)
	}
	return out
}

// Strings converts back.
func Strings(in []Text) []string {
	out := make([]string, len(in))
	for i, t := range in {
		out[i] = string(t)
	}
	return out
}
