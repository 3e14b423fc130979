package grant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/model/grant"
)

func TestHeaders(t *testing.T) {
	t.Parallel()
	got, err := grant.Headers(map[string]string{
		"X-LiteLLM-End-User-Id": "acct-1", "x-litellm-spend-logs-metadata": `{"run_id": "r", "attempt": 0}`, "X-Cogni-Run-Id": "r", "x-tag": "a b, c",
	})
	want := map[string]string{"x-litellm-end-user-id": "acct-1", "x-litellm-spend-logs-metadata": `{"run_id": "r", "attempt": 0}`, "x-cogni-run-id": "r", "x-tag": "a b, c"}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	many := map[string]string{}
	for i := range grant.MaxHeaders + 1 {
		many[fmt.Sprint("x-h", i)] = "v"
	}
	large := map[string]string{}
	for i := range 5 {
		large[fmt.Sprint("x-h", i)] = strings.Repeat("v", 2<<10)
	}
	for name, headers := range map[string]map[string]string{
		"line break":         {"x-tag": "a\r\nx-litellm-end-user-id: eve"},
		"line feed":          {"x-tag": "a\n"},
		"zero":               {"x-tag": "\x00"},
		"not ASCII":          {"x-tag": "ä"},
		"name smuggled":      {"x-tag: a\r\nx-b": "c"},
		"space in a name":    {"x-a b": "c"},
		"no x":               {"authorization": "Bearer k"},
		"only x":             {"x-": "k"},
		"long name":          {"x-" + strings.Repeat("a", 63): "k"},
		"long value":         {"x-tag": strings.Repeat("a", 2<<10+1)},
		"twice":              {"x-tag": "a", "X-Tag": "b"},
		"key":                {"x-api-key": "k"},
		"token":              {"X-Amz-Security-Token": "k"},
		"ours":               {"x-litellm-call-id": "k"},
		"steers LiteLLM":     {"x-litellm-tags": "k"},
		"our token":          {"x-atoll-token": "k"},
		"where it came from": {"x-forwarded-for": "1.2.3.4"},
		"other method":       {"x-http-method-override": "DELETE"},
		"metadata no object": {grant.MetadataHeader: `[1]`},
		"metadata null":      {grant.MetadataHeader: `null`},
		"metadata twice":     {grant.MetadataHeader: `{"a":1,"a":2}`},
		"metadata and more":  {grant.MetadataHeader: `{} {}`},
		"no account":         {grant.EndUserHeader: ""},
		"two accounts":       {grant.EndUserHeader: "a,b"},
		"run of spaces":      {grant.RunHeader: "a b"},
		"many":               many,
		"large":              large,
	} {
		if got, err := grant.Headers(headers); !errors.Is(err, grant.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What is let through is safe to send.
func FuzzHeaders(f *testing.F) {
	f.Add("x-tag", "a")
	f.Add(grant.MetadataHeader, `{"a":{"b":[1]}}`)
	f.Fuzz(func(t *testing.T, name, value string) {
		got, err := grant.Headers(map[string]string{name: value})
		if err != nil {
			return
		}
		for name, value := range got {
			if strings.ContainsAny(name+value, "\r\n\x00") || strings.ContainsAny(name, ": ") || !strings.HasPrefix(name, "x-") {
				t.Fatalf("%q: %q", name, value)
			}
		}
	})
}
