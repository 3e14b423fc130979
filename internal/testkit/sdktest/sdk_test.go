package sdktest_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/testkit/litellmtest"
)

// models are what the SDKs talk to.
func models() map[string]litellmtest.Model {
	soon := map[string]string{"retry-after-ms": "1"}
	unsteady := fakellm.Say("third time lucky")
	unsteady.First = []fakellm.Turn{{Status: 429, Text: "slow down", Header: soon}, {Status: 500, Text: "ouch", Header: soon}}
	breaking := fakellm.Say("the whole of it")
	breaking.First = []fakellm.Turn{{Text: "only the beginning", Cut: 3}}
	done := fakellm.Say("done")
	done.When = "/workspace"
	all := map[string]litellmtest.Model{
		"words":     {Answer: "one two three"},
		"worker":    {Script: fakellm.Script{{Text: "I look.", Calls: []fakellm.Call{{Name: "run", Arguments: `{"command":"pwd"}`}}}, done}},
		"unsteady":  {Script: fakellm.Script{unsteady}},
		"breaking":  {Script: fakellm.Script{breaking}},
		"forbidden": {},
	}
	for name, m := range all {
		m.Input, m.Output = 1e-06, 1e-05
		all[name] = m
	}
	return all
}

// said is a line of a program.
type said struct {
	Name     string
	Result   any
	Requests int
}

// checks runs a program's checks under a grant.
func (d *fixture) checks(g *service.ModelGrant, program string, names ...string) map[string]said {
	d.Helper()
	source, err := os.ReadFile("testdata/" + program)
	if err != nil {
		d.Fatal(err)
	}
	out := d.exec(g, source, map[string]string{}, append([]string{"/node_modules/node/bin/node", "--input-type=module", "-"}, names...)...)
	got := map[string]said{}
	for line := range strings.Lines(out) {
		var s said
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			d.Fatalf("%v: %s", err, out)
		}
		got[s.Name] = s
	}
	return got
}

// The real SDKs of OpenAI and Anthropic, in a sandbox without a network.
func TestSDKs(t *testing.T) {
	for _, backend := range []string{"linux", "docker"} {
		t.Run(backend, func(t *testing.T) {
			d := newDesk(t, fixtureOptions{backend: backend, models: models(), binds: []string{installed(t) + "/node_modules:/node_modules:ro"}})
			for name, test := range map[string]func(*fixture){"openai": testOpenAI, "anthropic": testAnthropic} {
				t.Run(name, func(t *testing.T) {
					d := *d
					d.T = t
					test(&d)
				})
			}
			if err := d.upstream.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

func testOpenAI(d *fixture) {
	d.compare("openai.mjs", "openai-1", 0, map[string]said{
		"whole":             {Result: object{"text": "one two three", "usage": 3.}, Requests: 1},
		"stream":            {Result: object{"text": "one two three", "usage": nil}, Requests: 1},
		"counted":           {Result: object{"text": "one two three", "usage": true}, Requests: 1},
		"tools":             {Result: object{"text": "done", "turns": 2.}, Requests: 2},
		"streamedTools":     {Result: object{"text": "done", "turns": 2.}, Requests: 2},
		"responses":         {Result: object{"text": "one two three", "usage": 3.}, Requests: 1},
		"streamedResponses": {Result: object{"text": "one two three", "usage": 3.}, Requests: 1},
		"models":            {Result: []any{"breaking", "unsteady", "words", "worker"}, Requests: 1},
		"retried":           {Result: "third time lucky", Requests: 3},
		"broken":            {Result: object{"first": object{"class": "APIError", "code": "upstream_failed"}, "then": "the whole of it"}, Requests: 2},
		"denied":            {Result: object{"class": "PermissionDeniedError", "status": 403., "code": "model_not_allowed"}, Requests: 1},
		"hosted":            {Result: object{"class": "PermissionDeniedError", "status": 403., "code": "provider_egress"}, Requests: 1},
	})
	spent := object{"class": "APIError", "status": 402., "code": "budget_exceeded"}
	d.compare("openai.mjs", "openai-2", 1, map[string]said{"spent": {Result: spent, Requests: 1}, "streamSpent": {Result: spent, Requests: 1}})
}

func testAnthropic(d *fixture) {
	d.compare("anthropic.mjs", "anthropic-1", 0, map[string]said{
		"whole":         {Result: object{"text": "one two three", "usage": 3.}, Requests: 1},
		"stream":        {Result: object{"text": "one two three", "usage": 3.}, Requests: 1},
		"counting":      {Result: true, Requests: 1},
		"tools":         {Result: object{"text": "done", "turns": 2., "stop": "end_turn"}, Requests: 2},
		"streamedTools": {Result: object{"text": "done", "turns": 2., "stop": "end_turn"}, Requests: 2},
		"retried":       {Result: "third time lucky", Requests: 3},
		"broken":        {Result: object{"first": object{"class": "APIError", "type": "api_error"}, "then": "the whole of it"}, Requests: 2},
		"denied":        {Result: object{"class": "PermissionDeniedError", "status": 403., "type": "permission_error"}, Requests: 1},
		"hosted":        {Result: object{"class": "PermissionDeniedError", "status": 403., "type": "permission_error"}, Requests: 1},
	})
	spent := object{"class": "APIError", "status": 402., "type": "billing_error"}
	d.compare("anthropic.mjs", "anthropic-2", 1, map[string]said{"spent": {Result: spent, Requests: 1}, "streamSpent": {Result: spent, Requests: 1}})
}

// compare runs checks as a run of its own, with a budget in millionths of a
// dollar, and compares what they say.
func (d *fixture) compare(program, run string, microUSD int64, want map[string]said) {
	d.Helper()
	g := d.grant(run, microUSD, "words", "worker", "unsteady", "breaking")
	defer func() {
		if err := g.Close(); err != nil {
			d.Error(err)
		}
	}()
	var names []string
	for name, w := range want {
		w.Name = name
		want[name] = w
		names = append(names, name)
	}
	if diff := cmp.Diff(want, d.checks(g, program, names...)); diff != "" {
		d.Errorf("(-want +got):\n%s", diff)
	}
}
