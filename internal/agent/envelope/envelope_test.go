package envelope_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/agent/envelope"
)

const seed = `{"payloads":[{"text":"hi","mediaUrl":null}],"meta":{"durationMs":12450,"agentMeta":{"sessionId":"run-1","provider":"cogni","model":"cogni/g","usage":{"input":3200,"output":890,"total":4090}},"error":null}}`

// The form of the seed comes back as it is: every member, in that order.
func TestSeedForm(t *testing.T) {
	e, err := envelope.Parse([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(e)
	if err != nil || string(got) != seed {
		t.Errorf("%v\n got %s\nwant %s", err, got, seed)
	}
}

func TestRecordedForms(t *testing.T) {
	for _, version := range []string{"2026.2.26", "2026.9.6"} {
		data, err := os.ReadFile("testdata/agent-json-" + version + ".json")
		if err != nil {
			t.Fatal(err)
		}
		e, err := envelope.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		want := envelope.AgentMeta{SessionID: e.Meta.AgentMeta.SessionID, Provider: "fake", Model: "fake/fake-1", Usage: envelope.Usage{Input: 11, Output: 4, Total: 15}}
		if diff := cmp.Diff(want, e.Meta.AgentMeta); diff != "" || e.Text() != "Hello from fake model." || e.Meta.Error != nil {
			t.Errorf("%s: %q %v\n%s", version, e.Text(), e.Meta.Error, diff)
		}
	}
}

func TestOutputs(t *testing.T) {
	for name, c := range map[string]struct{ output, text, kind string }{
		"noise around":    {"starting {up}\n[warn] x\n  " + seed + "\nbye\n", "hi", ""},
		"another object":  {`{"level":"info"}` + "\n" + seed + "\n" + `{"level":"info"}`, "hi", ""},
		"half an object":  {"{\"half\":\n" + seed, "hi", ""},
		"two envelopes":   {seed + strings.Replace(seed, "hi", "ho", 1), "ho", ""},
		"an error":        {strings.Replace(seed, `"error":null`, `"error":{"kind":"context_overflow","message":"m"}`, 1), "hi", "context_overflow"},
		"error as text":   {strings.Replace(seed, `"error":null`, `"error":"broken"`, 1), "hi", "error"},
		"aborted":         {strings.Replace(seed, `"error":null`, `"aborted":true`, 1), "hi", "aborted"},
		"strange numbers": {strings.NewReplacer("12450", "-5", "3200", "1e300").Replace(seed), "hi", ""},
		"of the gateway":  {`{"runId":"r","status":"ok","summary":"completed","result":` + seed + `}`, "hi", ""},
		"two payloads":    {strings.Replace(seed, `[{`, `[{"text":"a"},{"text":null},{`, 1), "a\n\nhi", ""},
	} {
		e, err := envelope.Parse([]byte(c.output))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kind := ""
		if e.Meta.Error != nil {
			kind = e.Meta.Error.Kind
		}
		if e.Text() != c.text || kind != c.kind {
			t.Errorf("%s: text %q, error %q", name, e.Text(), kind)
		}
	}
}

func TestNoEnvelope(t *testing.T) {
	for _, output := range []string{"", "hello", "{}", `{"payloads":[]}`, `{"payloads":"x","meta":{}}`, seed[:len(seed)-1], strings.Repeat("{", 1<<16), strings.Repeat("{\"a\":\n", 1<<21)} {
		if _, err := envelope.Parse([]byte(output)); !errors.Is(err, envelope.ErrNone) {
			t.Errorf("%.40q: %v", output, err)
		}
	}
	if _, err := envelope.Parse(make([]byte, envelope.MaxOutput+1)); err == nil || errors.Is(err, envelope.ErrNone) {
		t.Errorf("too much output: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(seed))
	f.Add([]byte("{\n{\"payloads\":[],\"meta\":{\"error\":1}}"))
	f.Fuzz(func(t *testing.T, output []byte) {
		if e, err := envelope.Parse(output); (e == nil) == (err == nil) {
			t.Fatalf("%v, %v", e, err)
		}
	})
}
