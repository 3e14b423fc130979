package amount

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Size is an amount of memory as the file wrote it: a string such as "512m" or
// a number of bytes. The written form is kept because it is what is hashed.
type Size struct {
	Text   string // "512m", or the number's digits
	Number bool   // written as a JSON number
}

// Forms returns a value of each form that the file may have.
func (Size) Forms() []any { return []any{"", 0.0} }

// Bytes returns the size in bytes, as Bytes reads it. "-1" is Unlimited.
func (s Size) Bytes() (int64, error) { return Bytes(s.Text) }

// MarshalJSON writes the size as the file did.
func (s Size) MarshalJSON() ([]byte, error) { return TextOrNumber(s.Text, s.Number) }

// UnmarshalJSON reads a string or a number.
func (s *Size) UnmarshalJSON(b []byte) (err error) {
	s.Text, s.Number, err = ReadTextOrNumber(b)
	return err
}

// TextOrNumber writes a text as a JSON string, or as the number that it is.
func TextOrNumber(text string, number bool) ([]byte, error) {
	if number {
		return []byte(text), nil
	}
	return jsontext.AppendQuote(nil, text)
}

// ReadTextOrNumber reads a JSON string or number.
func ReadTextOrNumber(b []byte) (text string, number bool, err error) {
	switch jsontext.Value(b).Kind() {
	case '0':
		return string(b), true, nil
	case '"':
		err = json.Unmarshal(b, &text)
		return text, false, err
	}
	return "", false, errors.New("expected a string or a number")
}
