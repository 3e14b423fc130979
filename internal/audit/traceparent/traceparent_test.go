package traceparent_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/audit/traceparent"
)

const id = "4bf92f3577b34da6a3ce929d0e0e4736"

func TestOf(t *testing.T) {
	for header, want := range map[string]string{
		"00-" + id + "-00f067aa0ba902b7-01":                       id,
		" 00-" + id + "-00f067aa0ba902b7-00 ":                     id,
		"01-" + id + "-00f067aa0ba902b7-01-more":                  id,
		"":                                                        "",
		"00-" + id + "-00f067aa0ba902b7-01-more":                  "",
		"01-" + id + "-00f067aa0ba902b7-01more":                   "",
		"ff-" + id + "-00f067aa0ba902b7-01":                       "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"00-" + id + "-0000000000000000-01":                       "",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01": "",
		"00-" + id + "-00f067aa0ba902b7-\r\n":                     "",
		"00-" + id + "\r\nx-evil: 1":                              "",
	} {
		if got := traceparent.TraceID(header); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
}

func TestParentIsReadBack(t *testing.T) {
	header := traceparent.HeaderValue(id, "task-1")
	if traceparent.TraceID(header) != id || header != traceparent.HeaderValue(id, "task-1") || header == traceparent.HeaderValue(id, "task-2") {
		t.Error(header)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("00-" + id + "-00f067aa0ba902b7-01")
	f.Fuzz(func(t *testing.T, header string) {
		if got := traceparent.TraceID(header); got != "" && !traceparent.IsID(got) {
			t.Errorf("%q: %q", header, got)
		}
	})
}
