//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/doctest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

const (
	// documentsVariable names the directory with the documents for a user who
	// cannot read the tree.
	documentsVariable = "ATOLL_TEST_DOCUMENTS"

	documentPatience = 4 * time.Minute
	// mostSkipped bounds the blocks that cannot run on a test machine.
	mostSkipped = 14
)

// documents returns the paths of everything that is written for users.
func documents(t *testing.T) []string {
	t.Helper()
	root := cmp.Or(os.Getenv(documentsVariable), "../..")
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents below %s: %v", root, err)
	}
	return append(files, filepath.Join(root, "README.md"))
}

func parseDocument(t *testing.T, path string) *doctest.Document {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := doctest.Parse(filepath.Base(path), string(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestDocuments runs what every document shows, in order, in a fresh home
// directory, and compares what is printed with what the document shows.
func TestDocuments(t *testing.T) {
	need.Time(t, "it runs the commands of all documents")
	for _, path := range documents(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			doc := parseDocument(t, path)
			script, err := doc.Script(os.Getuid() == 0)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(script.Text, "jq ") {
				need.Program(t, "jq", "jq")
			}
			out, err := newReader(t, doc.Needs).run(script.Text)
			if err := script.Compare(out, err); err != nil {
				t.Error(err)
			}
		})
	}
}

// What documents show works for an ordinary user too.
func TestDocumentsAsUser(t *testing.T) {
	needAnother(t)
	var env []string
	if _, err := sdkTools(t.Context()); err == nil {
		env = append(env, sdkVariable+"="+installedSDKs(t))
	}
	asSomeone(t, "TestDocuments", nil, env...)
}

// Few blocks are left out.
func TestSkippedBlocksAreFew(t *testing.T) {
	var skipped []string
	for _, path := range documents(t) {
		for _, b := range parseDocument(t, path).Blocks {
			if b.Skip != "" {
				skipped = append(skipped, fmt.Sprintf("%s:%d: %s", path, b.Line, b.Skip))
			}
		}
	}
	if len(skipped) > mostSkipped {
		t.Errorf("%d blocks are not run, %d may be:\n%s", len(skipped), mostSkipped, strings.Join(skipped, "\n"))
	}
}

// reader is a person who follows a document: a home directory, a project in
// it, and what the document takes for granted.
type reader struct {
	t    *testing.T
	home string
	env  []string
}

func newReader(t *testing.T, needs []string) *reader {
	t.Helper()
	home, err := os.MkdirTemp("", "d") //nolint:usetesting // short, for the sockets below it
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{t: t, home: home}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	r.env = append(plainEnvironment(), "HOME="+home, "PATH="+r.path("bin")+":"+os.Getenv("PATH"), "DOCKER_HOST="+nowhere, "TERM=dumb")
	r.mkdir("bin", "project/bin")
	r.wrapAtoll()
	for _, need := range needs {
		prepare := fixtures()[need]
		if prepare == nil {
			t.Fatalf("a document needs %q: known are %v", need, slices.Sorted(fixtureNames()))
		}
		prepare(r)
	}
	return r
}

// plainEnvironment is this process's environment without what configures Atoll
// or holds a key.
func plainEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return strings.HasPrefix(name, "ATOLL_") || strings.HasPrefix(name, "OPENCLAW_") || strings.HasSuffix(name, "_API_KEY") ||
			slices.Contains([]string{"HOME", "PATH", "DOCKER_HOST", "TERM", "GITHUB_TOKEN", "LITELLM_MASTER_KEY"}, name)
	})
}

func (r *reader) path(name string) string { return filepath.Join(r.home, name) }

func (r *reader) mkdir(names ...string) {
	for _, name := range names {
		if err := os.MkdirAll(r.path(name), 0o755); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *reader) chmod(name string, mode os.FileMode) {
	if err := os.Chmod(r.path(name), mode); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) write(name, text string, mode os.FileMode) {
	if err := os.WriteFile(r.path(name), []byte(text), mode); err != nil {
		r.t.Fatal(err)
	}
}

// wrapper starts the verbs that serve until they are interrupted in the
// background, as a person would in another terminal, and waits until they
// listen.
const wrapper = `#!/bin/bash
case " $* " in
*" --help "* | *" --background "*) exec %[1]q "$@" ;;
" gateway "* | " proxy "*) ;;
" dashboard "*) # the gateway that it would start has the port that everybody has
	[[ -S $HOME/.atoll/gateway.sock ]] || "$0" gateway >/dev/null
	exec %[1]q "$@" ;;
*) exec %[1]q "$@" ;;
esac
[[ $1 != gateway ]] || set -- "$@" --listen "127.0.0.1:$GATEWAY_PORT"
log=$(mktemp "$HOME/served.XXXXXX")
setsid %[1]q "$@" >"$log" 2>&1 </dev/null &
echo $! >>"$HOME/served.pids"
for ((i = 0; i < 300; i++)); do
	! grep -qE "serves|serving" "$log" || { cat "$log"; exit 0; }
	kill -0 $! 2>/dev/null || break
	sleep 0.1
done
cat "$log"
exit 1
`

// wrapAtoll puts the wrapper where a person finds atoll: in the PATH, and as
// bin/atoll of the project.
func (r *reader) wrapAtoll() {
	program, err := exec.LookPath("atoll")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range []string{"bin/atoll", "project/bin/atoll"} {
		r.install(name, fmt.Sprintf(wrapper, program))
	}
}

// install writes a program by another process: a descriptor of this one could be
// inherited by a process that another test starts, and the program could not be
// executed then.
func (r *reader) install(name, text string) {
	cmd := exec.CommandContext(r.t.Context(), "install", "-m", "755", "/dev/stdin", r.path(name))
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
}

// fill replaces what a reader replaces: the key that a document leaves out, and
// the ports that it names, which other programs of the machine may have taken.
func (r *reader) fill(script string) string {
	gateway := freePort(r.t)
	r.env = append(r.env, "GATEWAY_PORT="+gateway)
	return strings.NewReplacer("_API_KEY=…", "_API_KEY="+readersKey, "18789", gateway, "9090", freePort(r.t)).Replace(script)
}

// run runs a script in the project's directory and returns what it printed.
func (r *reader) run(script string) (string, error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), documentPatience)
	defer cancel()
	defer r.clean()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", r.fill(script))
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.path("project"), r.env, time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// clean ends what the document left running and removes its sandboxes.
func (r *reader) clean() {
	const script = `[ ! -e served.pids ] || for pid in $(cat served.pids); do kill $pid; while kill -0 $pid; do sleep 0.05; done; done 2>/dev/null
[ ! -e .atoll ] || { atoll sandbox recreate --all --force --discard; atoll sandbox recreate --browser --all --force; }`
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), cleanupTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env, cmd.WaitDelay = r.home, r.env, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("cleaning up: %v: %s", err, out)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
