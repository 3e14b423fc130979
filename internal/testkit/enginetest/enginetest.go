// Package enginetest gives tests the real engines they run on: the Docker and
// Podman that scripts/test-engine.sh keeps up, and Docker daemons of a test's
// own for what would disturb the others (restarts, kills). A test that needs an
// engine and finds none is left out, and says how to get one (package need).
//
// It belongs to tests only. What is done with an engine is not its matter.
package enginetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// The images that the shared engines hold. An engine of a test's own holds only
// TinyImage.
const (
	Image     = "openclaw-sandbox:bookworm-slim" // the sandbox image of images/sandbox
	TinyImage = "atoll-test-tiny:latest"         // two megabytes: busybox, a shell, no user set
)

const (
	dockerHostEnv = "ATOLL_TEST_DOCKER_HOST"
	podmanHostEnv = "ATOLL_TEST_PODMAN_HOST"
	engineDirEnv  = "ATOLL_TEST_ENGINE_DIR"

	defaultEngineDir = "/var/tmp/atoll-test-engine"
	pingTimeout      = 10 * time.Second
)

// Docker returns the host URL of the shared Docker engine.
func Docker(tb testing.TB) string {
	tb.Helper()
	return shared(tb, "Docker", dockerHost())
}

func dockerHost() string {
	return cmp.Or(os.Getenv(dockerHostEnv), "unix://"+filepath.Join(engineDir(), "docker.sock"))
}

// Podman returns the host URL of the shared Podman service, which speaks
// Docker's API.
func Podman(tb testing.TB) string {
	tb.Helper()
	return shared(tb, "Podman", cmp.Or(os.Getenv(podmanHostEnv), "unix://"+filepath.Join(engineDir(), "podman.sock")))
}

func engineDir() string { return cmp.Or(os.Getenv(engineDirEnv), defaultEngineDir) }

func shared(tb testing.TB, kind, host string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), pingTimeout)
	defer cancel()
	if err := ping(ctx, host); err != nil {
		need.Missing(tb, fmt.Errorf("no %s engine at %s: run `scripts/test-engine.sh up` (%w)", kind, host, err))
	}
	return host
}

// ping asks an engine whether it is there, as its own clients do.
func ping(ctx context.Context, host string) error {
	path, ok := strings.CutPrefix(host, "unix://")
	if !ok {
		return errors.New("not a unix:// address")
	}
	client := unixClient(path)
	defer client.CloseIdleConnections()
	answer, err := call(ctx, client, http.MethodGet, "/_ping", nil)
	if err != nil {
		return err
	}
	if string(answer) != "OK" {
		return fmt.Errorf("odd answer %.40q", answer)
	}
	return nil
}

func unixClient(path string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return unixDial(ctx, path) },
	}}
}

func unixDial(ctx context.Context, path string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// call makes one request and returns the whole answer; a status that is not a
// success is an error.
func call(ctx context.Context, client *http.Client, method, path string, body io.Reader) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %.200s", method, req.URL.Path, resp.Status, answer)
	}
	return answer, nil
}
