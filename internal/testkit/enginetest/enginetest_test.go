//go:build linux

package enginetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// failing records how a test would have ended.
type failing struct {
	testing.TB
	message string
}

func (f *failing) Fatal(args ...any) { f.message = fmt.Sprint(args...) }

func (f *failing) Skip(args ...any) { f.message = fmt.Sprint(args...) }

func TestSharedEngines(t *testing.T) {
	for name, find := range map[string]func(testing.TB) string{"docker": Docker, "podman": Podman} {
		t.Run(name, func(t *testing.T) {
			client := unixClient(strings.TrimPrefix(find(t), "unix://"))
			defer client.CloseIdleConnections()
			for _, image := range []string{Image, TinyImage} {
				if _, err := call(t.Context(), client, http.MethodGet, "/v1.41/images/"+image+"/json", nil); err != nil {
					t.Errorf("image %s: %v: run `scripts/test-engine.sh up`", image, err)
				}
			}
		})
	}
}

func TestMissingEngineFailsWithTheRemedy(t *testing.T) {
	t.Setenv(dockerHostEnv, "unix://"+filepath.Join(t.TempDir(), "none.sock"))
	recorder := &failing{TB: t}
	Docker(recorder)
	if !strings.Contains(recorder.message, "run `scripts/test-engine.sh up`") {
		t.Errorf("message %q does not say what to do", recorder.message)
	}
}

func TestOnlyUnixSocketsAreAccepted(t *testing.T) {
	t.Setenv(podmanHostEnv, "tcp://127.0.0.1:1")
	recorder := &failing{TB: t}
	Podman(recorder)
	if !strings.Contains(recorder.message, "not a unix:// address") {
		t.Errorf("message %q", recorder.message)
	}
}

// apiClient is the little that these tests ask of a private engine.
type apiClient struct {
	t      *testing.T
	client *http.Client
}

func newAPI(t *testing.T, e *Engine) apiClient {
	client := unixClient(e.path("docker.sock"))
	t.Cleanup(client.CloseIdleConnections)
	return apiClient{t, client}
}

func (a apiClient) do(method, path, body string) []byte {
	a.t.Helper()
	answer, err := call(a.t.Context(), a.client, method, "/v1.41"+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	return answer
}

func (a apiClient) run(network string) (id string) {
	a.t.Helper()
	created := a.do(http.MethodPost, "/containers/create",
		fmt.Sprintf(`{"Image":%q,"Cmd":["sleep","600"],"StopTimeout":1,"HostConfig":{"NetworkMode":%q}}`, TinyImage, network))
	var answer struct{ ID string }
	if err := json.Unmarshal(created, &answer); err != nil {
		a.t.Fatal(err)
	}
	a.do(http.MethodPost, "/containers/"+answer.ID+"/start", "")
	return answer.ID
}

func (a apiClient) running(id string) bool {
	a.t.Helper()
	var answer struct{ State struct{ Running bool } }
	if err := json.Unmarshal(a.do(http.MethodGet, "/containers/"+id+"/json", ""), &answer); err != nil {
		a.t.Fatal(err)
	}
	return answer.State.Running
}

func TestPrivateDocker(t *testing.T) {
	cases := []struct {
		name     string
		opts     Options
		end      func(*Engine) error
		survives bool
	}{
		{"restart stops containers", Options{}, (*Engine).Restart, false},
		{"restart with live-restore keeps them", Options{LiveRestore: true}, (*Engine).Restart, true},
		{"kill and start", Options{LiveRestore: true}, func(e *Engine) error { return firstError(e.Kill, e.StartAgain) }, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := PrivateDocker(t, c.opts)
			api := newAPI(t, e)
			ids := []string{api.run("none"), api.run("bridge")}
			if err := c.end(e); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				if got := api.running(id); got != c.survives {
					t.Errorf("container running = %v, want %v", got, c.survives)
				}
			}
		})
	}
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func TestPrivateDockerLeavesNothing(t *testing.T) {
	need.Root(t, "it starts a Docker daemon")
	var dir string
	t.Run("test with an engine", func(t *testing.T) {
		e := PrivateDocker(t, Options{LiveRestore: true})
		dir = e.dir
		newAPI(t, e).run("bridge")
		if pids, err := processesOf(dir); err != nil || len(pids) < 3 {
			t.Fatalf("processes %v, error %v: want at least dockerd, containerd and a container", pids, err)
		}
	})
	pids, err := processesOf(dir)
	if err != nil || len(pids) > 0 {
		t.Errorf("processes left: %v, error %v", pids, err)
	}
	if groups := cgroupsOf(dir); len(groups) > 0 {
		t.Errorf("control groups left: %v", groups)
	}
	for _, path := range []string{dir, netnsPath(dir)} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left (%v)", path, err)
		}
	}
}

func TestAbandonedEnginesAreSwept(t *testing.T) {
	t.Setenv(engineDirEnv, t.TempDir())
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	abandoned := filepath.Join(engineDir(), fmt.Sprintf("%s%d-x", privatePrefix, dead.Process.Pid))
	inUse := filepath.Join(engineDir(), fmt.Sprintf("%s%d-x", privatePrefix, os.Getpid()))
	leftover := startLeftover(t, abandoned)
	if err := os.Mkdir(inUse, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := sweepAbandoned(); err != nil {
		t.Fatal(err)
	}
	_ = leftover.Wait() // returns only if it was killed
	if _, err := os.Stat(abandoned); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("abandoned directory is left (%v)", err)
	}
	if _, err := os.Stat(inUse); err != nil {
		t.Errorf("directory of a living test is gone: %v", err)
	}
}

// startLeftover runs a process that is known, as a shim is, by dir on its
// command line.
func startLeftover(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "read wait", dir+"/shim")
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}
