package egresscmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

// Rules are added wherever the file ends, comments stay, and what comes out is read with
// the rules in it.
func TestInsertRules(t *testing.T) {
	for _, src := range []string{
		"", "{}", "// mine\n{\n}\n",
		`{ agents: { list: [{ id: "x" }] } }`,
		`{ agents: { defaults: { workspace: "/w", sandbox: { mode: "all" } } } } // end`,
		`{ "agents": { "defaults": { "sandbox": { "egress": { "private": ["10.0.0.0/8"] } } } } }`,
		"{ agents: { defaults: { sandbox: { egress: {\n  mode: \"enforce\", allow: [ // names\n    \"one.example\",\n  ],\n} } } } }",
		`{ agents: { defaults: { sandbox: { egress: { allow: [], mode: "ask" } } } } }`,
		`{ agents: { defaults: {} } }`,
	} {
		text, err := insertRules([]byte(src), []string{"shop.example", "*.cdn.example:8443"})
		if err != nil {
			t.Errorf("%s: %v", src, err)
			continue
		}
		cfg, err := config.Parse("atoll.json5", text, config.Environment{Home: "/h", Getenv: func(string) string { return "" }})
		if err != nil {
			t.Errorf("%s became %s: %v", src, text, err)
			continue
		}
		agent, err := cfg.Resolve(cfg.DefaultAgent())
		if err != nil {
			t.Fatal(err)
		}
		var rules []string
		for i := range agent.Sandbox.Egress.Allow {
			rules = append(rules, agent.Sandbox.Egress.Allow[i].String())
		}
		if !slices.Contains(rules, "shop.example") || !slices.Contains(rules, "*.cdn.example:8443") || agent.Sandbox.Egress.Mode == config.EgressOff {
			t.Errorf("%s became %s: mode %s, rules %q", src, text, agent.Sandbox.Egress.Mode, rules)
		}
		if strings.Contains(src, "one.example") != slices.Contains(rules, "one.example") || strings.Count(src, "//") > strings.Count(string(text), "//") {
			t.Errorf("%s became %s: something was lost", src, text)
		}
	}
}

func TestInsertRulesRefusesOtherShapes(t *testing.T) {
	for _, src := range []string{"[]", "{", `{ agents: [] }`, `{ agents: { defaults: { sandbox: { egress: { allow: "x" } } } } }`} {
		if text, err := insertRules([]byte(src), []string{"shop.example"}); err == nil {
			t.Errorf("%s became %s", src, text)
		}
	}
}

func TestStatusCountsByTarget(t *testing.T) {
	list := statusOf([]record{
		{Sandbox: "a", Event: "opened", Name: "x.example", Port: 443}, {Sandbox: "a", Event: "closed", Name: "x.example", Port: 443, BytesIn: 5, BytesOut: 7},
		{Sandbox: "a", Event: "opened", Name: "x.example", Port: 443}, {Sandbox: "a", Event: "denied", Name: "y.example", Port: 80, Reason: "no"},
		{Sandbox: "a", Event: "denied", Name: "z.example", Port: 80, Reason: "no"}, {Sandbox: "a", Event: "denied", Name: "z.example", Port: 80, Reason: "no"},
	})
	if len(list) != 1 || list[0].Connections != 2 || list[0].Open != 1 || list[0].BytesIn != 5 || list[0].BytesOut != 7 || len(list[0].Denied) != 2 || list[0].Denied[0] != (deniedCount{"z.example:80", "no", 2}) {
		t.Errorf("%+v", list[0])
	}
}

func TestTelemetryIsLeftOut(t *testing.T) {
	if p := proposalFor("telemetry.next.example:443", 3); p.LeftOut == "" {
		t.Errorf("%+v", p)
	}
	if p := proposalFor("shop.example:443", 3); p.LeftOut != "" || p.Rule != "shop.example" {
		t.Errorf("%+v", p)
	}
}
