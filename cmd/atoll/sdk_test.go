//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

const (
	// sdkVariable names a directory with the installed packages that an ordinary user
	// can read, sdkEngineVariable the engine whose sandboxes are used.
	sdkVariable       = "ATOLL_TEST_SDK"
	sdkEngineVariable = "ATOLL_TEST_SDK_ENGINE"
)

// The examples of the packages for other languages, installed into clean directories,
// print what they say that they print: on the Linux runtime and on Docker, for root and
// for an ordinary user.
func TestSDKExamples(t *testing.T) {
	need.Time(t, "it runs all examples")
	t.Parallel()
	if installed := os.Getenv(sdkVariable); installed != "" {
		runSDKs(t, installed, os.Getenv(sdkEngineVariable))
		return
	}
	installed := installedSDKs(t)
	t.Run("linux", func(t *testing.T) {
		t.Parallel()
		runSDKs(t, installed, "").runReadmes(t, installed)
	})
	t.Run("linux as user", func(t *testing.T) {
		t.Parallel()
		asSomeone(t, "TestSDKExamples", nil, sdkVariable+"="+installed)
	})
	t.Run("docker", func(t *testing.T) {
		t.Parallel()
		runSDKs(t, installed, enginetest.Docker(t))
	})
	t.Run("docker as user", func(t *testing.T) {
		t.Parallel()
		engine := enginetest.Docker(t)
		asSomeone(t, "TestSDKExamples", nil, sdkVariable+"="+installed, sdkEngineVariable+"="+engine, memberVariable+"="+groupOf(t, engine))
	})
}

// groupOf returns the number of the group whose members may use an engine.
func groupOf(t *testing.T, engine string) string {
	t.Helper()
	info, err := os.Stat(strings.TrimPrefix(engine, "unix://"))
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(int(info.Sys().(*syscall.Stat_t).Gid)) //nolint:forcetypeassert // it is one on Linux
}

// runSDKs runs the examples of all languages with one private gateway, on the Linux
// runtime if no engine is named.
func runSDKs(t *testing.T, installed, engine string) *reader {
	t.Helper()
	r := newReader(t, nil)
	r.env = append(r.env, "PYTHONDONTWRITEBYTECODE=1", "ATOLL_STATE_DIR="+r.path("state"))
	if engine != "" {
		r.useEngine(engine)
	}
	r.startPrivate()
	for _, language := range sdkLanguages {
		examples, err := filepath.Glob(filepath.Join(installed, language.examples))
		if err != nil || len(examples) < 10 {
			t.Fatalf("%v, %v", examples, err)
		}
		for _, path := range examples {
			t.Run(filepath.Base(path), func(t *testing.T) { r.runExample(t, language, installed, path, engine != "") })
		}
	}
	return r
}

// useEngine has the gateway make its sandboxes with an engine, of which none may be left.
func (r *reader) useEngine(engine string) {
	r.t.Helper()
	prefix := "sdk-" + strings.ToLower(rand.Text()[:8]) + "-"
	r.env = append(r.env, "DOCKER_HOST="+engine)
	r.mkdir("state")
	r.chmod("state", 0o700)
	r.write("state/atoll.json5", fmt.Sprintf(`{agents: {defaults: {sandbox: {backend: "docker", docker: {image: %q, containerPrefix: %q}}}}}`, enginetest.Image, prefix), 0o600)
	r.t.Cleanup(func() {
		out, err := exec.Command("docker", "--host", engine, "ps", "--all", "--quiet", "--filter", "name="+prefix).CombinedOutput()
		if err != nil || len(out) > 0 {
			r.t.Errorf("left: %s%v", out, err)
		}
	})
}

// runExample runs an example, and compares what it prints with its last comment. Sandboxes
// of engines have no templates.
func (r *reader) runExample(t *testing.T, language sdkLanguage, installed, path string, engine bool) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mark := language.comment + " "
	_, said, _ := strings.Cut(string(text), "\n"+mark+"Output:\n"+mark)
	argv := append(language.program[1:], strings.Replace(path, ".ts", ".js", 1))
	cmd := exec.CommandContext(t.Context(), filepath.Join(installed, language.program[0]), argv...)
	cmd.Dir, cmd.Env = r.home, r.env
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if engine && strings.Contains(path, "07_templates") {
		if !strings.Contains(problems.String(), "cannot be forked: not supported here (hint: set sandbox.backend to linux") {
			t.Errorf("%v\n%s%s", err, out, problems.Bytes())
		}
	} else if err != nil || string(out) != strings.ReplaceAll(said, "\n"+mark, "\n") {
		t.Errorf("%v\n%s%s\nand it says that it prints\n%s", err, out, problems.Bytes(), said)
	}
}

// startPrivate starts a private gateway, which must end by itself when the test has. On a
// machine that is busy it may end between two examples: the next starts another, whose
// time is a minute.
func (r *reader) startPrivate() {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "atoll", "gateway", "--background", "--idle", "5s")
	cmd.Dir, cmd.Env = r.home, r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	socket := strings.TrimSpace(string(out))
	r.t.Cleanup(func() {
		for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if _, err := os.Lstat(socket); err != nil {
				return
			}
			if time.Now().After(end) {
				r.t.Error("the gateway goes on although nobody uses it")
				return
			}
		}
	})
}
