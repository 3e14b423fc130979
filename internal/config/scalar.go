package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Size is an amount of memory as the file wrote it: a string such as "512m" or
// a number of bytes. The written form is kept because it is what is hashed.
type Size struct {
	Text   string // "512m", or the number's digits
	Number bool   // written as a JSON number
}

// Unlimited is the size that means no limit, where that is allowed.
const Unlimited = -1

func (Size) forms() []any { return []any{"", 0.0} }

// Bytes returns the size in bytes. The units are docker's: b, k, m, g, t with
// an optional b or ib after them, powers of 1024; fractions are allowed. "-1"
// is Unlimited.
func (s Size) Bytes() (int64, error) {
	text := strings.TrimSpace(s.Text)
	if text == "-1" {
		return Unlimited, nil
	}
	digits := strings.TrimRight(text, "bkmgtiBKMGTI ")
	unit, ok := unitOf(strings.TrimSpace(text[len(digits):]))
	value, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || strings.ContainsAny(digits, "+-eEpPxXnN_") {
		return 0, fmt.Errorf("size %s: expected a number and b, k, m, g or t", quote(s.Text))
	}
	if value *= unit; value >= math.MaxInt64 {
		return 0, fmt.Errorf("size %s: too large", quote(s.Text))
	}
	return int64(value), nil
}

func unitOf(suffix string) (factor float64, ok bool) {
	suffix = strings.ToLower(suffix)
	if suffix == "" || suffix == "b" {
		return 1, true
	}
	power := strings.IndexByte("kmgt", suffix[0])
	rest := suffix[1:]
	if power < 0 || rest != "" && rest != "b" && rest != "ib" {
		return 0, false
	}
	return float64(int64(1) << (10 * (power + 1))), true
}

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
		return "expected an amount of memory, found " + quote(n.text), `write bytes, or a number and a unit such as "512m"`
	}
	return "", ""
}

// checkAmount is for sizes of other things than memory.
func checkAmount(n *node) (message, hint string) {
	if bytes, ok := sizeOf(n); !ok || bytes <= 0 {
		return "expected an amount, found " + quote(n.text), `write a number, or a number and a unit such as "512m"`
	}
	return "", ""
}

// optionNames checks the names of options that are known by them.
func optionNames(names ...string) func(n *node) (message, hint string) {
	return func(n *node) (message, hint string) {
		if slices.Contains(names, n.text) {
			return "", ""
		}
		return "unknown option", "known options: " + strings.Join(names, ", ")
	}
}

func checkSwap(n *node) (message, hint string) {
	if bytes, ok := sizeOf(n); ok && bytes == Unlimited {
		return "", ""
	}
	return checkSize(n)
}

// Lines is text that the file may write as one string or as a list of lines.
type Lines []string

func (Lines) forms() []any { return []any{"", []string{}} }

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
