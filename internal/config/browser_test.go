package config_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

// TestBrowserEgress: what a browser reaches is its own, the sandbox's or public, in this order.
func TestBrowserEgress(t *testing.T) {
	for _, c := range []struct {
		name, sandbox string
		want          config.EgressMode
	}{
		{"nothing is written", `{}`, config.EgressPublic},
		{"a network of OpenClaw", `{browser: {network: "web"}}`, config.EgressPublic},
		{"no network", `{browser: {network: "none"}}`, config.EgressOff},
		{"the sandbox's", `{egress: {mode: "enforce"}, browser: {network: "web"}}`, config.EgressEnforce},
		{"an off that is written", `{egress: {mode: "off"}}`, config.EgressOff},
		{"its own", `{egress: {mode: "enforce"}, browser: {egress: {mode: "ask"}}}`, config.EgressAsk},
		{"its own without a mode", `{egress: {mode: "enforce"}, browser: {egress: {deny: ["a.example.org"]}}}`, config.EgressPublic},
	} {
		cfg, err := config.Parse("/p/atoll.json5", []byte(`{agents: {defaults: {sandbox: `+c.sandbox+`}}}`), config.Environment{Home: "/h", Cwd: "/p"})
		if err != nil {
			t.Fatal(c.name, err)
		}
		agent, err := cfg.Resolve("")
		if err != nil {
			t.Fatal(c.name, err)
		}
		if e := agent.Sandbox.BrowserEgress(); e.Mode != c.want {
			t.Errorf("%s: mode %s, want %s", c.name, e.Mode, c.want)
		}
	}
}
