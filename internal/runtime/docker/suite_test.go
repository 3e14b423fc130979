package docker_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/runtime/docker"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/guestbuild"
	"github.com/atoll-run/atoll/internal/testkit/sandboxtest"
)

// The suite of every runtime, with the real guest. Tests of its own name for
// each engine: the suite starts the test binary again by the top name.

func TestSuiteDocker(t *testing.T) {
	sandboxtest.Run(t, subject(enginetest.Docker(t), docker.Docker))
}

func TestSuitePodman(t *testing.T) {
	sandboxtest.Run(t, subject(enginetest.Podman(t), docker.Podman))
}

func subject(host string, flavor docker.Flavor) sandboxtest.Subject {
	return sandboxtest.Subject{
		Image: enginetest.Image, Workdir: "/workspace", Walls: true,
		Open: func(t *testing.T, stateDir string) sandbox.Runtime {
			t.Helper()
			r, err := docker.New(docker.Options{
				Host: host, Flavor: flavor, StateDir: stateDir, Installation: "suite-" + filepath.Base(stateDir),
				Guest: func(string) ([]byte, error) { return os.ReadFile(guestbuild.Build(t)) },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = r.Close() })
			return r
		},
		Retag: func(t *testing.T, _, ref string, second bool) {
			t.Helper()
			image := enginetest.TinyImage
			if !second {
				image = enginetest.Image
				t.Cleanup(func() { engine(t, host, "rmi", "--no-prune", ref) })
			}
			engine(t, host, "tag", image, ref)
		},
	}
}

// engine runs a command of docker on an engine.
func engine(t *testing.T, host string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), "docker", append([]string{"--host", host}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("docker %v: %v: %s", args, err, out)
	}
}
