package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// someone is a user without privileges.
const someone = 54323

// outcome is what a command line did, as far as its caller sees it.
type outcome struct {
	Out, Err string
	Code     int
}

// dock is a docker: the real one, or ours over some machinery.
type dock struct {
	*testing.T
	name    string // of the container that it works with
	dir     string // on the host, its user's own
	program string
	env     []string
	user    *syscall.Credential
}

// realDock is the real client on the real engine.
func realDock(t *testing.T) *dock {
	t.Helper()
	d := &dock{T: t, name: unique(), dir: openDir(t), program: "docker", env: append(os.Environ(), "DOCKER_HOST="+enginetest.Docker(t))}
	t.Cleanup(d.clear)
	return d
}

// machinery is what stands behind our docker.
type machinery struct {
	name    string
	backend string
	user    uint32 // 0: whoever runs the tests
}

// giveAway makes a directory the machinery's user's.
func (m machinery) giveAway(path string) error {
	if m.user == 0 {
		return nil
	}
	return os.Chown(path, int(m.user), int(m.user))
}

// machineries are those that every comparison is made with.
func machineries() []machinery {
	return []machinery{{"docker", "docker", 0}, {"linux", "linux", 0}, {"linux as an ordinary user", "linux", someone}}
}

// podman is the machinery that is compared in the common things only: it is a
// docker to Atoll.
var podman = machinery{"podman", "podman", 0}

// ourDock is ours.
func ourDock(t *testing.T, m machinery) *dock {
	t.Helper()
	if m.user != 0 {
		need.Root(t, "it becomes another user")
	}
	dir := openDir(t)
	config := filepath.Join(dir, "atoll.json5")
	if err := os.WriteFile(config, []byte(`{agents: {defaults: {sandbox: {backend: "`+m.backend+`"}}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	d := &dock{T: t, name: unique(), dir: filepath.Join(dir, "own"), program: filepath.Join(programs, "atoll-docker")}
	d.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + state, "TERM=xterm", "ATOLL_CONFIG=" + config, "ATOLL_STATE_DIR=" + state, "DOCKER_HOST=unix:///nowhere.sock"}
	for _, path := range []string{d.dir, state} {
		if err := errors.Join(os.Mkdir(path, 0o700), m.giveAway(path)); err != nil {
			t.Fatal(err)
		}
	}
	if m.user != 0 {
		d.user = &syscall.Credential{Uid: m.user, Gid: m.user}
	}
	t.Cleanup(d.clear)
	switch m.backend {
	case "docker":
		d.env[len(d.env)-1] = "DOCKER_HOST=" + enginetest.Docker(t)
	case "podman":
		d.env = append(d.env, "CONTAINER_HOST="+enginetest.Podman(t))
	default:
		d.importImage()
	}
	return d
}

func unique() string { return "atoll-cmp-" + strings.ToLower(rand.Text()[:10]) }

// openDir is a directory that every user can enter, with a short name: sockets
// are made below it.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// importImage takes the image in that containers are made of: what every docker
// can save, every user can read.
func (d *dock) importImage() {
	d.Helper()
	path := filepath.Join(openDir(d.T), "image.tar")
	out, err := exec.CommandContext(d.Context(), "docker", "-H", enginetest.Docker(d.T), "save", "-o", path, enginetest.TinyImage).CombinedOutput()
	if err := errors.Join(err, os.Chmod(path, 0o644)); err != nil {
		d.Fatalf("docker save: %v\n%s", err, out)
	}
	cmd := d.command("images", "import", path)
	cmd.Path = filepath.Join(programs, "atoll")
	cmd.Args[0] = cmd.Path
	if out, err := cmd.CombinedOutput(); err != nil {
		d.Fatalf("import of %s: %v\n%s", path, err, out)
	}
}

// clear removes the container, whatever became of the test.
func (d *dock) clear() { d.run("", "rm", "-f", d.name) }

// patience is how long a command line may take on a loaded machine.
const patience = 2 * time.Minute

func (d *dock) command(args ...string) *exec.Cmd {
	cmd := exec.Command(d.program, args...)
	cmd.Env, cmd.Dir = d.env, d.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.user}
	return cmd
}

// run carries one command line out.
func (d *dock) run(stdin string, args ...string) outcome {
	d.Helper()
	var out, problems bytes.Buffer
	cmd := d.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &problems
	if err := cmd.Start(); err != nil {
		d.Fatalf("%s: %v (scripts/deps.sh installs docker)", d.program, err)
	}
	watch := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if !watch.Stop() {
		d.Errorf("docker %s did not end within %v", strings.Join(args, " "), patience)
	}
	return outcome{out.String(), problems.String(), cmd.ProcessState.ExitCode()}
}

// say carries out a line in which spaces separate arguments, _ stands for a
// space, and NAME, DIR and IMAGE for what this docker works with.
func (d *dock) say(stdin, line string) outcome {
	d.Helper()
	return d.plain(d.run(stdin, d.words(line)...))
}

func (d *dock) words(line string) (args []string) {
	names := strings.NewReplacer("NAME", d.name, "DIR", d.dir, "IMAGE", enginetest.TinyImage)
	for field := range strings.FieldsSeq(line) {
		args = append(args, names.Replace(strings.ReplaceAll(field, "_", " ")))
	}
	return args
}

var (
	ids     = regexp.MustCompile(`[0-9a-f]{64}`)
	shortID = regexp.MustCompile(`\b[0-9a-f]{12}\b`)
	lengths = regexp.MustCompile(`(Less than a second|About a minute|[0-9]+ (second|minute)s?)`)
	moments = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
)

// plain is an outcome without what differs from one container to the next.
func (d *dock) plain(o outcome) outcome { return outcome{d.clean(o.Out), d.clean(o.Err), o.Code} }

func (d *dock) clean(text string) string {
	text = strings.NewReplacer(d.name, "NAME", d.dir, "DIR").Replace(text)
	text = lengths.ReplaceAllString(moments.ReplaceAllString(text, "MOMENT"), "LENGTH")
	return shortID.ReplaceAllString(ids.ReplaceAllString(text, "ID"), "SHORT")
}
