package dockerformat

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"text/template"
)

// templateFuncs are those that docker's formats know.
func templateFuncs() template.FuncMap {
	return template.FuncMap{
		"json":  JSONText,
		"join":  strings.Join,
		"split": strings.Split,
		"lower": strings.ToLower,
		"upper": strings.ToUpper,
		"title": func(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] },
		"pad": func(s string, before, after int) string {
			return strings.Repeat(" ", before) + s + strings.Repeat(" ", after)
		},
		"truncate": func(s string, n int) string { return s[:min(n, len(s))] },
		"println":  func(args ...any) string { return sprintln(args...) },
	}
}

func sprintln(args ...any) string {
	var b strings.Builder
	for i, arg := range args {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(plainText(arg))
	}
	return b.String() + "\n"
}

func plainText(arg any) string {
	if s, ok := arg.(string); ok {
		return s
	}
	text, _ := JSONText(arg)
	return text
}

// JSONText returns a value as JSON, as docker prints it.
func JSONText(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// Error is a template that cannot be parsed, or not be applied to a value.
type Error struct {
	err    error
	syntax bool // it cannot be parsed
}

func (e *Error) Error() string { return "template parsing error: " + e.err.Error() }

// IsSyntaxError reports whether an error means that a template cannot be parsed.
func IsSyntaxError(err error) bool {
	wrong, ok := errors.AsType[*Error](err)
	return ok && wrong.syntax
}

// Render fills a format in: by Go's names of the fields first, as docker does,
// and if that fails by their names in JSON.
func Render(format string, v any) (string, error) {
	t, err := template.New("").Funcs(templateFuncs()).Parse(format)
	if err != nil {
		return "", &Error{err, true}
	}
	var b strings.Builder
	if err := t.Execute(&b, v); err == nil {
		return b.String(), nil
	}
	text, err := JSONText(v)
	if err != nil {
		return "", err
	}
	var raw any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&raw); err != nil {
		return "", err
	}
	b.Reset()
	if err := t.Option("missingkey=error").Execute(&b, raw); err != nil {
		return "", &Error{err: err}
	}
	return b.String(), nil
}

// Indented is a value as docker prints it without a format.
func Indented(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	err := encoder.Encode(v)
	return b.String(), err
}
