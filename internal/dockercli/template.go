package dockercli

import (
	"bytes"
	"encoding/json"
	"strings"
	"text/template"
)

// templateFuncs are those that docker's formats know.
func templateFuncs() template.FuncMap {
	return template.FuncMap{
		"json":  jsonText,
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
	text, _ := jsonText(arg)
	return text
}

func jsonText(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// exitFormat is docker's code for a format that cannot be read.
const exitFormat = 64

// render fills a format in: by Go's names of the fields first, as docker does,
// and if that fails by their names in JSON.
func render(format string, v any) (string, error) {
	t, err := template.New("").Funcs(templateFuncs()).Parse(format)
	if err != nil {
		return "", &exitError{code: exitFormat, err: localError("template parsing error: " + err.Error())}
	}
	var b strings.Builder
	if err := t.Execute(&b, v); err == nil {
		return b.String(), nil
	}
	text, err := jsonText(v)
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
		return "", localError("template parsing error: " + err.Error())
	}
	return b.String(), nil
}

// indented is a value as docker prints it without a format.
func indented(v any) (string, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	err := encoder.Encode(v)
	return b.String(), err
}
