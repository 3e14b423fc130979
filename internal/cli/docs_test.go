package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config"
)

const reference = "../../docs/config.md"

// schema is as much of a JSON Schema as leads to the names of keys.
type schema struct {
	Ref        string            `json:"$ref"`
	Properties map[string]schema `json:"properties"`
	Defs       map[string]schema `json:"$defs"`
}

func TestReferenceNamesEveryKeyOfSandboxes(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	data, err := config.Schema()
	if err != nil {
		t.Fatal(err)
	}
	var top schema
	if err := json.Unmarshal(data, &top); err != nil {
		t.Fatal(err)
	}
	sandbox := top.at("agents").from(&top).at("defaults").from(&top).at("sandbox").from(&top)
	if len(sandbox.Properties) < 10 {
		t.Fatalf("the schema has only %d keys for sandboxes", len(sandbox.Properties))
	}
	for _, part := range []string{"", "docker", "prune", "browser", "egress"} {
		object := sandbox
		if part != "" {
			object = sandbox.at(part).from(&top)
		}
		for key := range object.Properties {
			if !regexp.MustCompile("[`.]" + regexp.QuoteMeta(key) + "`").Match(text) {
				t.Errorf("%s says nothing about sandbox.%s.%s", reference, part, key)
			}
		}
	}
}

func (s schema) at(key string) schema { return s.Properties[key] }

// from follows a reference within the document.
func (s schema) from(top *schema) schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		return top.Defs[name]
	}
	return s
}

var example = regexp.MustCompile("(?s)```json5\n(.*?)```")

func TestExamplesOfTheReferenceAreGood(t *testing.T) {
	for _, name := range []string{reference, "../../README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		examples := example.FindAllSubmatch(text, -1)
		if len(examples) == 0 {
			t.Errorf("%s has no examples", name)
		}
		for _, e := range examples {
			cfg, err := config.Parse("/project/atoll.json5", e[1], config.Environment{Home: "/home/user", Cwd: "/project"})
			if err != nil {
				t.Errorf("%s: %v in\n%s", name, err, e[1])
				continue
			}
			if warnings := cfg.Warnings(); len(warnings) > 0 {
				t.Errorf("%s: %v in\n%s", name, warnings, e[1])
			}
		}
	}
}
