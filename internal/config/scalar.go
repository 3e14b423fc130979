package config

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/amount"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// Size is an amount of memory as the file wrote it: a string such as "512m" or
// a number of bytes. The written form is kept because it is what is hashed.
type Size struct {
	Text   string // "512m", or the number's digits
	Number bool   // written as a JSON number
}

// Unlimited is the size that means no limit, where that is allowed.
const Unlimited = amount.Unlimited

// Forms returns a value of each form that the file may have.
func (Size) Forms() []any { return []any{"", 0.0} }

// Bytes returns the size in bytes, as amount.Bytes reads it. "-1" is Unlimited.
func (s Size) Bytes() (int64, error) { return amount.Bytes(s.Text) }

// MarshalJSON writes the size as the file did.
func (s Size) MarshalJSON() ([]byte, error) { return textOrNumber(s.Text, s.Number) }

// UnmarshalJSON reads a string or a number.
func (s *Size) UnmarshalJSON(b []byte) (err error) {
	s.Text, s.Number, err = readTextOrNumber(b)
	return err
}

func textOrNumber(text string, number bool) ([]byte, error) {
	if number {
		return []byte(text), nil
	}
	return jsontext.AppendQuote(nil, text)
}

func readTextOrNumber(b []byte) (text string, number bool, err error) {
	switch jsontext.Value(b).Kind() {
	case '0':
		return string(b), true, nil
	case '"':
		err = json.Unmarshal(b, &text)
		return text, false, err
	}
	return "", false, errors.New("expected a string or a number")
}

// sizeOf returns the bytes that a well-formed size node stands for.
func sizeOf(n *node) (int64, bool) {
	if n == nil || n.kind != '"' && n.kind != '0' {
		return 0, false
	}
	bytes, err := Size{n.text, n.kind == '0'}.Bytes()
	return bytes, err == nil
}

func checkSize(n *node) (message, hint string) {
	bytes, ok := sizeOf(n)
	if !ok || bytes <= 0 {
		return "expected an amount of memory, found " + wording.Quote(n.text), `write bytes, or a number and a unit such as "512m"`
	}
	return "", ""
}

// checkAmount is for sizes of other things than memory.
func checkAmount(n *node) (message, hint string) {
	if bytes, ok := sizeOf(n); !ok || bytes <= 0 {
		return "expected an amount, found " + wording.Quote(n.text), `write a number, or a number and a unit such as "512m"`
	}
	return "", ""
}

func checkSwap(n *node) (message, hint string) {
	if bytes, ok := sizeOf(n); ok && bytes == Unlimited {
		return "", ""
	}
	return checkSize(n)
}

// Lines is text that the file may write as one string or as a list of lines.
type Lines []string

// Forms returns a value of each form that the file may have.
func (Lines) Forms() []any { return []any{"", []string{}} }

// UnmarshalJSON reads a string or a list of strings.
func (l *Lines) UnmarshalJSON(b []byte) error {
	if jsontext.Value(b).Kind() == '"' {
		*l = Lines{""}
		return json.Unmarshal(b, &(*l)[0])
	}
	return json.Unmarshal(b, (*[]string)(l))
}

// Text is the lines as one string.
func (l Lines) Text() string { return strings.Join(l, "\n") }
