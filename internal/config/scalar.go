package config

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/atoll-run/atoll/internal/config/amount"
	"github.com/atoll-run/atoll/internal/config/wording"
)

// Size is an amount of memory as the file wrote it.
type Size = amount.Size

// Unlimited is the size that means no limit, where that is allowed.
const Unlimited = amount.Unlimited

// sizeOf returns the bytes that a well-formed size node stands for.
func sizeOf(n *node) (int64, bool) {
	if n == nil || n.kind != '"' && n.kind != '0' {
		return 0, false
	}
	bytes, err := Size{Text: n.text, Number: n.kind == '0'}.Bytes()
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
