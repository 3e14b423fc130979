package enginetest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Overlay is an overlay of the kernel that an engine mounts.
type Overlay struct {
	Base, Upper, Work string
	Beside            string // a directory that the script sees under its own path
}

// Run runs a script as root in a container, in the directory where an engine has
// mounted the overlay. $HELPER is the test binary, which does not sleep before it exits
// if it has the race detector.
func (o Overlay) Run(tb testing.TB, host, script string) (out []byte, err error) {
	tb.Helper()
	volume := "atoll-test-overlay-" + strings.ToLower(rand.Text())
	options := fmt.Sprintf("o=lowerdir=%s,upperdir=%s,workdir=%s,redirect_dir=on,nosuid,nodev", o.Base, o.Upper, o.Work)
	if out, err := docker(tb, host, "", "volume", "create", "--driver", "local", "--opt", "type=overlay", "--opt", "device=overlay", "--opt", options, volume); err != nil {
		return out, err
	}
	out, err = docker(tb, host, script, "run", "--rm", "--interactive", "--user", "0", "--network", "none", "--env", "HELPER=/helper", "--env", "GORACE=atexit_sleep_ms=0", "--volume", os.Args[0]+":/helper:ro",
		"--volume", o.Beside+":"+o.Beside, "--volume", volume+":/overlay", "--workdir", "/overlay", Image, "sh")
	_, removed := docker(tb, host, "", "volume", "rm", volume)
	return out, errors.Join(err, removed)
}

func docker(tb testing.TB, host, input string, args ...string) ([]byte, error) {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), "docker", append([]string{"--host", host}, args...)...)
	cmd.Stdin = strings.NewReader(input) // an argument would have to be UTF-8
	return cmd.CombinedOutput()
}

// Overlays returns the engines that mount overlays, by name.
func Overlays() map[string]func(testing.TB) string {
	return map[string]func(testing.TB) string{"docker": Docker, "podman": Podman}
}
