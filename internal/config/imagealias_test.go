package config_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

// The image has two names: the second stands for the first, for agents and for
// agents of runs.
//
// Seen to fail with an imageNamed that returns its argument.
func TestNameOfTheRuntimeImage(t *testing.T) {
	const text = `{agents: {defaults: {sandbox: {docker: {image: "cogni-sandbox-runtime:latest"}}}},
		runs: {variants: {mine: {argv: ["/x"], image: "cogni-sandbox-runtime"}, other: {argv: ["/x"], image: "cogni-sandbox-runtime:2"}}}}`
	cfg, err := config.Parse("a", []byte(text), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	agent, err := cfg.Resolve("main")
	if err != nil || agent.Sandbox.Docker.Image != "openclaw-sandbox:bookworm-slim" {
		t.Errorf("%+v, %v", agent, err)
	}
	runs, err := cfg.Runs()
	if err != nil || runs.Variants[0].Image != "openclaw-sandbox:bookworm-slim" || runs.Variants[1].Image != "cogni-sandbox-runtime:2" {
		t.Errorf("%+v, %v", runs.Variants, err)
	}
}
