package tracing

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/attribute"
)

// maxText bounds every name and text of a span: some are chosen inside a sandbox.
const maxText = 200

// list returns attributes in the order of their names.
func list(a Attributes) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(a))
	for _, name := range slices.Sorted(maps.Keys(a)) {
		switch v := a[name].(type) {
		case string:
			if v != "" {
				all = append(all, attribute.String(name, clip(v)))
			}
		case int:
			all = append(all, attribute.Int(name, v))
		case int64:
			all = append(all, attribute.Int64(name, v))
		case float64:
			all = append(all, attribute.Float64(name, v))
		case bool:
			all = append(all, attribute.Bool(name, v))
		}
	}
	return all
}

// clip returns the beginning of a text, without what cannot be printed.
func clip(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

// Code returns the code of a failure, or "" if there was none.
func Code(err error, code string) string {
	if err == nil {
		return ""
	}
	return code
}
