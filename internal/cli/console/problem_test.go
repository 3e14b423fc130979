package console

import (
	"testing"

	"github.com/atoll-run/atoll/internal/config"
)

func TestOriginOfEntries(t *testing.T) {
	written := config.Origin{Source: "agent", Path: "agents.list[0].sandbox.docker.tmpfs", Line: 3}
	joined := config.Origin{Source: "agent", Path: "agents.list[0].sandbox.docker.binds[0]", Line: 4}
	agent := &config.Agent{Origins: map[string]config.Origin{
		"tmpfs": written, "binds[1]": joined, "capDrop": {Source: "default"},
	}}
	for field, want := range map[string]string{
		"tmpfs":      "agents.list[0].sandbox.docker.tmpfs",
		"tmpfs[2]":   "agents.list[0].sandbox.docker.tmpfs[2]",
		"binds[1]":   "agents.list[0].sandbox.docker.binds[0]",
		"capDrop[0]": "",
		"unknown":    "",
		"unknown[0]": "",
	} {
		if got := OriginOf(agent, field).Path; got != want {
			t.Errorf("%s comes from %q, want %q", field, got, want)
		}
	}
}
