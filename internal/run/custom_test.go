package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/run"
)

func TestCustom(t *testing.T) {
	v := run.Custom{
		ID: "mine", Argv: []string{"prog", "--model={model}", "{task}", "{task-file}"}, Env: map[string]string{"URL": "{base-url}/v1"},
		Files: map[string]string{"settings": "run {run} in {workspace}"},
	}.Variant()
	argv, err := v.Argv(job("-x {model}"))
	if err != nil || !slices.Equal(argv, []string{"prog", "--model=m", "-x {model}", "/workspace/.cogni/prompt.txt"}) {
		t.Errorf("%q, %v", argv, err) // what a task says is not replaced again
	}
	if env := v.Env(job("x")); env["URL"] != "http://127.0.0.1:8080/v1" || env["HOME"] != "/workspace" {
		t.Errorf("%v", env)
	}
	files, err := v.Files(job("x"))
	if err != nil || len(files) != 3 || string(files[2].Data) != "run r1 in /workspace" {
		t.Errorf("%+v, %v", files, err)
	}
	var f *run.Failure
	if _, err := v.Argv(job(strings.Repeat("x", 200<<10))); !errors.As(err, &f) || f.Code != "prompt_too_large" {
		t.Errorf("error %v", err)
	}
}

func TestCustomReads(t *testing.T) {
	for name, c := range map[string]struct {
		custom     run.Custom
		out        string
		text, kind string
		none       bool
	}{
		"text":          {run.Custom{Read: "text"}, " hello\xff \n", "hello\uFFFD", "", false},
		"no text":       {run.Custom{Read: "text"}, " \n", "", "", true},
		"object":        {run.Custom{Read: "json", Answer: "a.b"}, "{\n\"a\": {\"b\": \"yes\"}\n}", "yes", "", false},
		"last line":     {run.Custom{Read: "json", Answer: "result"}, "{\"x\":1}\nnoise\n{\"result\":\"yes\"}\n", "yes", "", false},
		"failure":       {run.Custom{Read: "json", Answer: "result", Failure: "is_error"}, `{"result":"no money","is_error":true}`, "no money", "agent_error", false},
		"no failure":    {run.Custom{Read: "json", Answer: "result", Failure: "is_error"}, `{"result":"yes","is_error":false}`, "yes", "", false},
		"not there":     {run.Custom{Read: "json", Answer: "result"}, `{"x":1}`, "", "", true},
		"no JSON":       {run.Custom{Read: "json", Answer: "result"}, "Segmentation fault", "", "", true},
		"envelope":      {run.Custom{}, answer, "done", "", false},
		"not an object": {run.Custom{Read: "json", Answer: "result"}, "null", "", "", true},
	} {
		e, err := c.custom.Variant().Read([]byte(c.out))
		if c.none {
			if err == nil {
				t.Errorf("%s: %+v", name, e)
			}
			continue
		}
		if err != nil || e.Text() != c.text || (e.Meta.Error == nil) != (c.kind == "") {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := (run.Custom{Read: "text"}).Variant().Read(nil); !errors.Is(err, envelope.ErrNone) {
		t.Errorf("error %v", err)
	}
}

func TestCustomCheck(t *testing.T) {
	for name, c := range map[string]run.Custom{
		"no program": {}, "no answer": {Argv: []string{"x"}, Read: "json"}, "unknown": {Argv: []string{"x"}, Read: "yaml"},
		"outside": {Argv: []string{"x"}, Files: map[string]string{"../x": ""}}, "absolute": {Argv: []string{"x"}, Files: map[string]string{"/x": ""}},
		"answer of text": {Argv: []string{"x"}, Read: "text", Answer: "a"},
	} {
		if len(c.Check()) == 0 {
			t.Errorf("%s was taken", name)
		}
	}
}
