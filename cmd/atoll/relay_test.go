//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/relaytest"
)

// canary is the credential of the demonstration. It is in the environment of
// every atoll, and must be nowhere else.
const canary = "ghp_canary9876543210zyxwvutsrq"

const relayPatience = 3 * time.Minute

// traces are the forms in which the credential could be somewhere.
func traces() [][]byte {
	return [][]byte{[]byte(canary), []byte(base64.StdEncoding.EncodeToString([]byte("x-access-token:" + canary)))[20:]}
}

// relayScript is the agent of the demonstration: it looks for the credential
// wherever it can, and works only if it finds nothing.
func relayScript() fakellm.Script {
	const search = `hits=$( { env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; git config --list; ` +
		`grep -rash . /workspace /tmp /etc /run /var/tmp 2>/dev/null; } | grep -acE 'ghp_canar[y]|Z2hwX2Nhbm[F]yeT'); test \"$hits\" = 0 && echo CLEAN || echo \"hits: $hits\"`
	const commit = `cat /proc/sys/kernel/random/uuid > work-$(cat /proc/sys/kernel/random/uuid) && git add -A && ` +
		`git commit -qm 'Do the work' && git push origin HEAD 2>&1 || true; git log --oneline`
	return fakellm.Script{
		fakellm.Use("exec", `{"command":"`+search+`"}`),
		{When: "CLEAN", Calls: []fakellm.Call{{Name: "exec", Arguments: `{"command":"` + commit + `"}`}}},
		{When: "Do the work", Text: "Done."},
	}
}

// relayDemo is an installation, and the servers that its commits go to.
type relayDemo struct {
	t      *testing.T
	dir    string
	env    []string
	server *relaytest.GitServer
	hub    *relaytest.GitHub
	asked  chan struct{} // one for every agent that asked a model
	open   chan struct{} // closed when models may answer
}

func newRelayDemo(t *testing.T) *relayDemo {
	t.Helper()
	d := &relayDemo{
		t: t, server: relaytest.NewGitServer(t, canary), hub: relaytest.NewGitHub(t, canary, "org/project"),
		asked: make(chan struct{}, 100), open: make(chan struct{}),
	}
	var err error
	if d.dir, err = os.MkdirTemp("", "atoll"); err != nil { //nolint:usetesting // the sockets below it must fit into 108 bytes
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(d.dir) })
	if err := os.Mkdir(d.server.Dir("org"), 0o700); err != nil {
		t.Fatal(err)
	}
	repository := d.server.Create(t, "org/project", map[string]string{"README.md": "hello\n"})
	text, err := json.Marshal(map[string]any{
		"relay":  map[string]any{"repository": repository, "allowHTTP": true, "api": d.hub.URL, "labels": []string{"agent"}},
		"agents": map[string]any{"defaults": map[string]any{"model": "p/m", "sandbox": map[string]any{"mode": "all", "backend": "linux", "scope": "session"}}},
		"models": map[string]any{"providers": map[string]any{"p": map[string]any{
			"baseUrl": d.models() + "/v1", "apiKey": "none", "api": "openai-completions", "models": []any{map[string]any{"id": "m", "name": "m"}},
		}}},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "atoll.json5"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.env = append(os.Environ(), "HOME="+d.dir, "ATOLL_STATE_DIR="+filepath.Join(d.dir, "state"), "ATOLL_CONFIG="+filepath.Join(d.dir, "atoll.json5"),
		"DOCKER_HOST="+nowhere, "CONTAINER_HOST="+nowhere, "GITHUB_TOKEN="+canary)
	t.Cleanup(func() {
		d.atoll(context.WithoutCancel(t.Context()), "sandbox", "recreate", "--all", "--force", "--discard")
	})
	return d
}

// models is the address of a model that answers when all have asked.
func (d *relayDemo) models() string {
	model, err := fakellm.Listen(d.t.Context(), "tcp", "127.0.0.1:0", relayScript())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = model.Close() })
	base, err := url.Parse(model.BaseURL())
	if err != nil {
		d.t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: base.Scheme, Host: base.Host})
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.asked <- struct{}{}
		select {
		case <-d.open:
			through.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	d.t.Cleanup(gate.Close)
	return gate.URL
}

// said is what a process printed so far.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// atoll runs the program to its end.
func (d *relayDemo) atoll(ctx context.Context, args ...string) string {
	out := &said{}
	d.start(ctx, out, args...)()
	return out.String()
}

func (d *relayDemo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "atoll", args...)
	cmd.Dir, cmd.Env = d.dir, d.env
	return cmd
}

// start runs the program; the result waits for its end.
func (d *relayDemo) start(ctx context.Context, out *said, args ...string) (wait func()) {
	ctx, cancel := context.WithTimeout(ctx, relayPatience)
	cmd := d.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	return func() {
		defer cancel()
		if err := cmd.Wait(); err != nil {
			d.t.Errorf("atoll %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// until waits for something.
func (d *relayDemo) until(what string, is func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(relayPatience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatalf("never: %s", what)
		}
	}
}

// TestRelayDemonstration: two agents on one line of work and one on another, at
// once. Three runs make two pull requests with the right commits, and nothing of
// the credential is ever where it should not be.
func TestRelayDemonstration(t *testing.T) {
	d := newRelayDemo(t)
	watch := watchProcesses(t)
	var one, two, three said
	ctx := t.Context()
	waits := []func(){
		d.start(ctx, &one, "runs", "start", "-m", "do it", "--run-id", "r1", "--branch", "one"),
		d.start(ctx, &two, "runs", "start", "-m", "do it", "--run-id", "r2", "--work-item", "one"),
		d.start(ctx, &three, "agent", "-m", "do it", "--run-id", "r3", "--branch", "two", "--json"),
	}
	d.until("two agents work and one waits", func() bool {
		return len(d.asked) >= 2 && strings.Contains(one.String()+two.String(), "waiting for branch sandbox/one (1 before)")
	})
	close(d.open)
	for _, wait := range waits {
		wait()
	}
	watch()
	for branch, want := range map[string]string{"one": "Atoll:Do the work\nAtoll:Do the work", "two": "Atoll:Do the work"} {
		if got := d.server.Git(t, "org/project", "log", "--format=%an:%s", "main..sandbox/"+branch); got != want {
			t.Errorf("sandbox/%s has %q", branch, got)
		}
	}
	d.checkPulls(one.String()+two.String(), three.String())
	for name, text := range map[string]string{"r1": one.String(), "r2": two.String(), "r3": three.String()} {
		if at := trace([]byte(text)); at != "" {
			t.Errorf("%s printed %s", name, at)
		}
	}
	d.searchFiles(filepath.Join(d.dir, "state"))
	d.searchFiles(d.server.Dir("org/project"))
}

// checkPulls finds the two pull requests, and their addresses where they should
// be told.
func (d *relayDemo) checkPulls(runs, agent string) {
	pulls := d.hub.Pulls()
	heads := map[string]string{}
	for _, p := range pulls {
		heads[p.Head] = fmt.Sprintf("https://github.example.com/org/project/pull/%d", p.Number)
		if !p.Draft || !slices.Equal(p.Labels, []string{"agent"}) || trace([]byte(p.Body)) != "" {
			d.t.Errorf("%+v", p)
		}
	}
	if len(pulls) != 2 || heads["sandbox/one"] == "" || heads["sandbox/two"] == "" {
		d.t.Fatalf("pull requests: %+v", pulls)
	}
	if strings.Count(runs, "relay: "+heads["sandbox/one"]) != 2 {
		d.t.Errorf("the runs say\n%s", runs)
	}
	var result struct {
		Meta struct {
			Atoll struct {
				Relay struct{ PullRequest, State string }
			}
		}
	}
	if err := json.Unmarshal([]byte(agent[strings.Index(agent, "{"):]), &result); err != nil || result.Meta.Atoll.Relay.PullRequest != heads["sandbox/two"] {
		d.t.Errorf("the agent says %v\n%s", err, agent)
	}
}

// trace is the form of the credential that is in some bytes; "" if none is.
func trace(data []byte) string {
	for _, form := range traces() {
		if bytes.Contains(data, form) {
			return string(form)
		}
	}
	return ""
}

// searchFiles looks for the credential in every file: databases, logs, the
// audit, mirrors, what is left of sandboxes.
func (d *relayDemo) searchFiles(root string) {
	files := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if info, _ := e.Info(); errors.Is(err, fs.ErrPermission) && info != nil && info.Mode().Perm()&0o444 == 0 {
			return nil // the guest's program, which may only be executed
		}
		if at := trace(data); at != "" {
			d.t.Errorf("%s is in %s", at, path)
		}
		return err
	})
	if err != nil || files == 0 {
		d.t.Errorf("searched %d files below %s: %v", files, root, err)
	}
}

// watchProcesses looks for the credential in the arguments of every process, and
// in the environment of all but atoll's own, until the result is called.
func watchProcesses(t *testing.T) (end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	found := map[string]bool{}
	go func() {
		defer close(done)
		for {
			lookAtProcesses(self, found)
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		for what := range found {
			t.Error(what)
		}
	}
}

func lookAtProcesses(self string, found map[string]bool) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		arguments, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if trace(arguments) != "" {
			found["in the arguments of "+string(bytes.ReplaceAll(arguments, []byte{0}, []byte{' '}))] = true
		}
		program, err := os.Readlink(filepath.Join(dir, "exe"))
		if err != nil || isAtoll(program, self) {
			continue
		}
		environment, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if trace(environment) != "" && !bytes.Contains(environment, []byte("GIT_PROJECT_ROOT=")) { // the server may know it
			found["in the environment of "+program+" "+string(bytes.ReplaceAll(arguments, []byte{0}, []byte{' '}))] = true
		}
	}
}

// isAtoll reports whether a program is the one that is tested, under whatever
// name.
func isAtoll(program, self string) bool {
	a, errA := os.Stat(program)
	b, errB := os.Stat(self)
	return errA == nil && errB == nil && os.SameFile(a, b) || filepath.Base(program) == "atoll"
}
