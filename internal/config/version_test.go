package config

import (
	"strings"
	"testing"
	"time"
)

// A file without a version, or of this one, is read; OpenClaw's own file is not
// ours to refuse.
func TestVersion(t *testing.T) {
	for _, test := range []struct{ name, text, wrong string }{
		{"atoll.json5", `{}`, ""},
		{"atoll.json5", `{version: 1}`, ""},
		{"atoll.json5", `{version: 2}`, "atoll.json5:1:11: version: config version 2 is newer than this atoll knows (1): update atoll"},
		{"atoll.json5", `{version: 2, moat: "deep", agents: 7}`, "config version 2 is newer than this atoll knows (1): update atoll"},
		{"atoll.json5", `{version: 1.5}`, "expected a whole number, found 1.5"},
		{"atoll.json5", `{version: 1e400}`, "the number is too large"},
		{"atoll.json5", `{version: "1"}`, "atoll.json5:1:11: version: expected a whole number, found a string"},
		{"atoll.json5", `{version: null}`, "expected a whole number, found null"},
		{"openclaw.json", `{"version": "2026.9.6", "agents": {}}`, ""},
		{"openclaw.json", `{"version": 9}`, ""},
	} {
		t.Run(test.name+" "+test.text, func(t *testing.T) {
			c, err := Parse("/x/"+test.name, []byte(test.text), Environment{Getenv: func(string) string { return "" }, Home: "/h", Cwd: "/x"})
			switch {
			case test.wrong == "" && (err != nil || c == nil):
				t.Error(err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong) || strings.Contains(err.Error(), "\n")):
				t.Errorf("%v, want %s", err, test.wrong)
			}
		})
	}
}

// A key that left has the version and the date when it did.
func TestRetiredKeysAreDated(t *testing.T) {
	for name, key := range retired {
		if _, err := time.Parse(time.DateOnly, key.date); err != nil || key.version < 1 || key.version > Version || key.instead == "" {
			t.Errorf("%s: %+v", name, key)
		}
	}
}
