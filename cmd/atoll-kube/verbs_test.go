package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/buildtest"
	"github.com/atoll-run/atoll/internal/testkit/clustertest"
)

// user runs commands of the program in an installation whose sandboxes are pods.
type user struct {
	*testing.T
	dir    string
	config map[string]any
}

// keysOf are the keys of a configuration for sandboxes in a namespace of the test cluster.
func keysOf(c *clustertest.Cluster, namespace string) map[string]any {
	return map[string]any{
		"kubeconfig": c.Kubeconfig(), "namespace": namespace, "guestImage": cmp.Or(os.Getenv("ATOLL_TEST_GUEST_IMAGE"), "atoll-guest:latest"),
		"imagePullPolicy": "Never", "serviceAccount": "default", "seccompProfile": "atoll/sandbox.json", "startTimeoutSec": 60,
	}
}

// newUser writes a configuration for a namespace of the cluster and builds the program.
func newUser(t *testing.T, c *clustertest.Cluster, namespace string) *user {
	t.Helper()
	u := &user{T: t, dir: t.TempDir()}
	type o = map[string]any
	u.config = o{
		"agents": o{"defaults": o{"sandbox": o{"mode": "all", "scope": "session", "backend": "kubernetes", "docker": o{"image": "openclaw-sandbox:bookworm-slim"}}}},
		"relay":  o{"repository": filepath.Join(u.dir, "origin.git")},
		"runs":   o{"variants": o{"nests": o{"argv": []any{"/bin/sh", "-c", nests}, "read": "text"}}},
	}
	u.set("kubernetes", keysOf(c, namespace))
	err := buildtest.Programs(t.Context(), u.dir, "atoll-kube")
	if err == nil {
		err = os.Mkdir(filepath.Join(u.dir, "project"), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = u.try("sandbox", "recreate", "--all", "--force", "--discard") })
	return u
}

// file is the path of the configuration.
func (u *user) file() string { return filepath.Join(u.dir, "atoll.json5") }

// set changes a section of the configuration; nil removes it.
func (u *user) set(section string, keys map[string]any) {
	u.Helper()
	if u.config[section] = keys; keys == nil {
		delete(u.config, section)
	}
	text, err := json.Marshal(u.config)
	if err == nil {
		err = os.WriteFile(u.file(), text, 0o600)
	}
	if err != nil {
		u.Fatal(err)
	}
}

// try runs a command of the program and returns all that it says.
func (u *user) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.Context()), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(u.dir, "atoll-kube"), args...)
	cmd.Dir, cmd.Env = u.dir, append(os.Environ(), "HOME="+u.dir, "ATOLL_STATE_DIR="+filepath.Join(u.dir, "state"), "ATOLL_CONFIG="+u.file(), "OPENAI_API_KEY=sk-not-asked-0123456789")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// want runs a command that says something.
func (u *user) want(text string, args ...string) {
	u.Helper()
	if out, err := u.try(args...); err != nil || !strings.Contains(out, text) {
		u.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestVerbs: what works in sandboxes of other backends works in pods too, or is refused by
// name before anything is made.
func TestVerbs(t *testing.T) {
	c := clustertest.Shared(t)
	namespace := c.Namespace(t, "atoll-verbs")
	u := newUser(t, c, namespace)
	u.refusals()
	u.services()
	u.files()
	u.relay()
	u.keptWork()
	u.volume(c, namespace)
}

func (u *user) refusals() {
	u.Helper()
	for want, args := range map[string][]string{
		"sandbox.browser: the kubernetes backend has no browsers":      {"browser", "open", "http://example.com/"},
		"the cluster does not have that directory":                     {"run", "--workspace", "project", "--access", "overlay", "--", "true"},
		"is a directory of this host, which the cluster does not have": {"run", "--workspace", "project", "--access", "rw", "--", "true"},
	} {
		if out, err := u.try(args...); err == nil || !strings.Contains(out, want) {
			u.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if out, err := u.try("sandbox", "list", "--json"); err != nil || strings.Contains(out, "openclaw-sbx") {
		u.Errorf("something was made: %v\n%s", err, out)
	}
}

// services reaches a service of this machine that a sandbox was given.
func (u *user) services() {
	u.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a service of the host") }))
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":")+1:]
	u.want("a service of the host", "run", "--service", port, "--", "curl", "-sS", "http://localhost:"+port)
}

// files stops a pod and looks for its files in the next one.
func (u *user) files() {
	u.Helper()
	u.want("", "run", "--", "sh", "-c", "echo kept >a; ln a b; ln -s a c")
	u.want("stopped", "stop", "agent:main")
	u.want(" SAVED ", "sandbox", "list")
	u.want("kept kept kept", "run", "--", "sh", "-c", "echo $(cat a b c)")
}

// relay has the commits of an agent judged and pushed.
func (u *user) relay() {
	u.Helper()
	for _, line := range []string{
		"init -q --bare origin.git", "init -q -b main seed", "-C seed -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m one",
		"-C seed push -q ../origin.git main", "-C origin.git symbolic-ref HEAD refs/heads/main",
	} {
		cmd := exec.CommandContext(u.Context(), "git", strings.Fields(line)...)
		cmd.Dir = u.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			u.Fatalf("git %s: %v: %s", line, err, out)
		}
	}
	u.want("pushed to sandbox/try", "demo", "--branch", "try", "--session", "agent:main:relayed")
}

// nests makes a repository inside that of the run, which no commit of the run can hold, with
// more in it than is brought home from a pod that is ended by force.
const nests = "git init -q sub && truncate -s 300M sub/large && echo end >>sub/large && echo made"

// keptWork has a run make files that the relay cannot take: they are kept on the host, whole.
func (u *user) keptWork() {
	u.Helper()
	out, err := u.try("runs", "start", "--variant", "nests", "--branch", "nested", "--run-id", "kept", "-m", "x")
	if err == nil || !strings.Contains(out, "the files are kept in") {
		u.Errorf("%v\n%s", err, out)
	}
	kept, err := os.Stat(filepath.Join(u.dir, "state", "kept", "kept", "wt", "nested", "sub", "large"))
	if err != nil || kept.Size() != 300<<20+int64(len("end\n")) {
		u.Errorf("not kept: %v, %+v\n%s", err, kept, out)
	}
}

// volume has the workspace of a session on a PersistentVolumeClaim, which goes with the private
// copy, also when the configuration asks for no claims any more.
func (u *user) volume(c *clustertest.Cluster, namespace string) {
	u.Helper()
	keys := keysOf(c, namespace)
	c.Volume(u.T, clustertest.Volume{Name: namespace, Class: namespace})
	keys["workspaceVolume"] = map[string]any{"size": "1Gi", "storageClass": namespace}
	u.set("kubernetes", keys)
	claims := func() string {
		return c.Kubectl(u.T, "", "-n", namespace, "get", "persistentvolumeclaims", "-o", "name")
	}
	u.want("", "run", "--session", "agent:main:kept", "--", "sh", "-c", "echo kept >file")
	u.want("", "rm", "agent:main:kept", "--force")
	u.want("kept", "run", "--session", "agent:main:kept", "--", "cat", "file")
	if claims() == "" {
		u.Error("the workspace was on no claim: this tries nothing")
	}
	u.set("kubernetes", keysOf(c, namespace))
	u.want("", "rm", "agent:main:kept", "--force", "--discard")
	if left := claims(); left != "" {
		u.Errorf("left: %s", left)
	}
}
