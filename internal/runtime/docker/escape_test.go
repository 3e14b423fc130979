package docker_test

import (
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/docker"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/escapetest"
)

// Hostile code in containers, as an ordinary user and as root without
// capabilities.

func TestEscapeDocker(t *testing.T) {
	s := prey(enginetest.Docker(t), docker.Docker)
	t.Run("user", func(t *testing.T) { escapetest.Run(t, s) })
	s.User = "0:0"
	t.Run("root", func(t *testing.T) { escapetest.Steps(t, s) })
}

func TestEscapePodman(t *testing.T) {
	s := prey(enginetest.Podman(t), docker.Podman)
	t.Run("user", func(t *testing.T) { escapetest.Steps(t, s) })
	s.User, s.GuestFilesOpen = "0:0", true
	t.Run("root", func(t *testing.T) { escapetest.Steps(t, s) })
}

func prey(host string, flavor docker.Flavor) escapetest.Subject {
	return escapetest.Subject{Open: subject(host, flavor).Open, Backend: string(flavor), Image: enginetest.TinyImage, User: "1000:1000", Limits: true, SharedUsers: true, Engine: true, Slow: true}
}
