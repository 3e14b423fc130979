package config_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

func TestPosition(t *testing.T) {
	const src = `{
  agents: {
    defaults: { sandbox: { docker: {
      binds: ["/a:/a",
              "/b:/b"],
      env: { A_B: "1" } } } },
    entries: { main: {} },
  },
}`
	cfg, err := config.Parse("/project/atoll.json5", []byte(src), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string][2]int{
		"agents.defaults.sandbox.docker.binds":      {4, 14},
		"agents.defaults.sandbox.docker.binds[1]":   {5, 15},
		"agents.defaults.sandbox.docker.env.A_B":    {6, 19},
		`agents.defaults.sandbox.docker.env["x y"]`: {},
		"agents.entries.main":                       {7, 22},
		"agents.defaults.sandbox.docker.binds[2]":   {},
		"agents.defaults.sandbox.docker.binds[-1]":  {},
		"agents.defaults.sandbox.docker.binds[":     {},
		"agents.defaults.sandbox.docker.binds[x]":   {},
		`agents["defaults"].sandbox`:                {3, 26},
		"agents.nothing":                            {},
		"..":                                        {},
		"":                                          {},
	} {
		if line, column := cfg.Position(place); [2]int{line, column} != want {
			t.Errorf("%s is at %d:%d, want %v", place, line, column, want)
		}
	}
	if line, _ := config.Default(testEnv()).Position("agents"); line != 0 {
		t.Errorf("without a file, agents is on line %d", line)
	}
}

func TestFromVariable(t *testing.T) {
	const src = `{ agents: { defaults: { sandbox: { docker: { env: { A: "x ${PROXY}", B: "y" } } } } } }`
	cfg, err := config.Parse("/project/openclaw.json", []byte(src), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	const at = "agents.defaults.sandbox.docker.env."
	for place, want := range map[string]bool{at + "A": true, at + "B": false, at + "C": false, "": false} {
		if got := cfg.FromVariable(place); got != want {
			t.Errorf("%s comes from a variable: %v, want %v", place, got, want)
		}
	}
}
