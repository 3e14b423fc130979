//go:build linux

package limatest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/internettest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// worldVariable names the file of the surroundings; without it virtual machines are mount
// namespaces.
const worldVariable = "LIMATEST_WORLD"

// World is what virtual machines that are sandboxes reach: Debian's packages as this
// machine has them, NodeSource's packages and OpenClaw's from a repository and a registry
// of its own, and the engine of tests in the place of the Docker inside.
type World struct {
	Node *Repository

	around surroundings
}

// NewWorld has the virtual machines of a test be sandboxes that the program atoll makes.
func NewWorld(tb testing.TB, program string) *World {
	tb.Helper()
	need.Root(tb, "a sandbox whose files are root's")
	need.Program(tb, "npm", "npm")
	dir := shortDir(tb)
	w := &World{Node: newRepository(tb), around: surroundings{
		Program: program, State: filepath.Join(dir, "state"), Image: enginetest.Image,
		Allow: []string{"preset:debian", nodeHost},
	}}
	internet, err := internettest.Start(w.Node)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = internet.Close() })
	internet.Only(nodeHost)
	w.around.Upstream = internet.Proxy
	engine, registry := engineView(tb), servePackages(tb)
	w.around.Services = []int{engine, registry}
	w.around.Env = map[string]string{"DOCKER_HOST": fmt.Sprintf("tcp://127.0.0.1:%d", engine), "NPM_CONFIG_REGISTRY": fmt.Sprintf("http://127.0.0.1:%d/", registry)}
	w.around.Files = aptFiles(tb, string(internet.CA))
	w.write(tb, filepath.Join(dir, "world.json"))
	w.importImage(tb, dir)
	return w
}

// shortDir returns a directory whose path leaves room for the sockets in it.
func shortDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "lima") //nolint:usetesting // the names of tests are long
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

func (w *World) write(tb testing.TB, path string) {
	tb.Helper()
	text, err := json.Marshal(w.around)
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	tb.Setenv(worldVariable, path)
}

// importImage takes Debian's image from the engine of tests, and removes the sandboxes
// when the test ends.
func (w *World) importImage(tb testing.TB, dir string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, "atoll.json5"), []byte("{}"), 0o600); err != nil {
		tb.Fatal(err)
	}
	cmd := w.around.atoll(dir, "images", "import", "--from-docker", w.around.Image)
	cmd.Env = append(cmd.Env, "DOCKER_HOST="+enginetest.Docker(tb))
	cmd.Stdout, cmd.Stderr = nil, nil
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	tb.Cleanup(func() {
		cmd := w.around.atoll(dir, "sandbox", "recreate", "--all", "--force")
		cmd.Stdout, cmd.Stderr = nil, nil
		if out, err := cmd.CombinedOutput(); err != nil {
			tb.Errorf("%v\n%s", err, out)
		}
	})
}

// aptFiles are the settings of apt inside: the sources of this machine where it is of the
// same release, one user, and the authority of the repository that is stood in for.
func aptFiles(tb testing.TB, authority string) map[string]string {
	tb.Helper()
	files := map[string]string{
		standInDir + "/authority.pem":         authority,
		"/etc/apt/apt.conf.d/99limatest":      "APT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\nAcquire::https::CAInfo \"" + standInDir + "/authority.pem\";\n",
		"/etc/dpkg/dpkg.cfg.d/limatest":       "force-unsafe-io\n",
		"/etc/dpkg/dpkg.cfg.d/limatest-paths": "path-exclude=/usr/share/doc/*\npath-exclude=/usr/share/man/*\n",
	}
	if release, err := os.ReadFile("/etc/os-release"); err != nil || !strings.Contains(string(release), "VERSION_CODENAME=bookworm") {
		return files
	}
	sources, err := filepath.Glob("/etc/apt/sources.list.d/debian.sources")
	if err != nil {
		tb.Fatal(err)
	}
	for _, path := range append(sources, "/etc/apt/sources.list") {
		text, err := os.ReadFile(path)
		if err == nil || path == "/etc/apt/sources.list" {
			files[path] = string(text)
		}
	}
	return files
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func output(tb testing.TB, argv ...string) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), argv[0], argv[1:]...).Output()
	if err != nil {
		tb.Fatalf("%q: %v", argv, err)
	}
	return strings.TrimSpace(string(out))
}

// listen returns a listener on the loopback interface that is closed when the test ends.
func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return l
}
