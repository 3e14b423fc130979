package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/config"
)

func TestTopLevelParts(t *testing.T) {
	cfg, err := config.Parse("atoll.json5", []byte(`{channels:{}, holograms:{a:1}, plugins:{}}`), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"channels", "holograms", "plugins"}, cfg.Ignored()); diff != "" {
		t.Error(diff)
	}
	if w := cfg.Warnings(); len(w) != 1 || w[0].Path != "holograms" {
		t.Errorf("warnings: %v", w)
	}
	for _, ours := range []string{"Agents", "agent", "docker", "sandbox", "image", "$include", "defaults"} {
		if _, err := config.Parse("atoll.json5", []byte(`{"`+ours+`":{}}`), testEnv()); err == nil {
			t.Errorf("%s was taken for another program's part", ours)
		}
	}
}

// TestHostileNames: text that no message should repeat as it is.
func TestHostileNames(t *testing.T) {
	long := strings.Repeat("n", 300)
	for name, src := range map[string]string{
		"long key":         `{agents:{defaults:{"` + long + `":1}}}`,
		"long value":       `{agents:{defaults:{sandbox:{mode:"` + long + `"}}}}`,
		"long agent":       `{agents:{entries:{"` + long + `":{}}}}`,
		"long listed id":   `{agents:{list:[{id:"` + long + `"}]}}`,
		"controls in key":  `{agents:{defaults:{"a\n\x1b[31mb":1}}}`,
		"controls in id":   `{agents:{entries:{"a\n\x1b[31mb":{}}}}`,
		"controls in bind": `{agents:{defaults:{sandbox:{docker:{binds:["/a\n\x1b[31m:/b"]}}}}}`,
		"image":            `{agents:{defaults:{sandbox:{docker:{image:"a\x1b[31mb"}}}}}`,
		"unicode id":       `{agents:{entries:{"日本語":{}}}}`,
		"unicode env":      `{agents:{defaults:{sandbox:{docker:{env:{"ÄÖ":"1"}}}}}}`,
		"bidi in prefix":   `{agents:{defaults:{sandbox:{docker:{containerPrefix:"a\u202eb"}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse("atoll.json5", []byte(src), testEnv())
			if err == nil {
				t.Fatal("accepted")
			}
			text := err.Error()
			if strings.ContainsAny(text, "\n\x1b\u202e") {
				t.Errorf("the message repeats control characters: %q", text)
			}
			if strings.Contains(text, long) {
				t.Errorf("the message is too long: %s", text)
			}
		})
	}
}

func TestVariablesOnlyInOpenClawsFile(t *testing.T) {
	const src = `{agents:{defaults:{sandbox:{docker:{env:{P:"${PROXY}"}, setupCommand:"echo ${HOME}"}}}}}`
	cfg, err := config.Parse("/project/atoll.json5", []byte(src), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	a, err := cfg.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	if got := a.Sandbox.Docker.Env["P"]; got != "${PROXY}" {
		t.Errorf("a project's file got %q from the environment", got)
	}
	if w := cfg.Warnings(); len(w) != 1 || w[0].Path != "agents.defaults.sandbox.docker.env.P" {
		t.Errorf("warnings: %v", w)
	}
}
