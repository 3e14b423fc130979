package trust_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// fixture is an installation and a project of one test.
type fixture struct {
	*testing.T
	dir, project, state string
	env                 config.Environment
}

func newPlace(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	p := &fixture{T: t, dir: dir, project: filepath.Join(dir, "project"), state: filepath.Join(dir, "state")}
	p.env = config.Environment{Home: dir, Cwd: p.project, Getenv: func(name string) string {
		return map[string]string{"ATOLL_STATE_DIR": p.state}[name]
	}}
	p.must(os.MkdirAll(p.project, 0o755))
	return p
}

func (p *fixture) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// write makes the project's file.
func (p *fixture) write(content string) {
	p.Helper()
	p.must(os.WriteFile(filepath.Join(p.env.Cwd, trust.FileName), []byte(content), 0o600))
}

func (p *fixture) open() *trust.Opened {
	p.Helper()
	o, err := trust.Open(p.env)
	p.must(err)
	return o
}

// image is the image of the agent, which a file without power cannot set.
func image(t *testing.T, o *trust.Opened) string {
	t.Helper()
	a, err := o.Config.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	return a.Sandbox.Docker.Image
}

const (
	evil    = `{agents: {defaults: {sandbox: {docker: {image: "evil:1"}}}}, tools: {deny: ["exec"]}}`
	builtin = "openclaw-sandbox:bookworm-slim"
)

// TestRefusedFiles gives the working directory files that must count for
// nothing, and must not hold anybody up.
func TestRefusedFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make func(p *fixture, file string)
		why  string
	}{
		"a link out": {func(p *fixture, file string) {
			outside := filepath.Join(p.dir, "outside.json5")
			p.must(os.WriteFile(outside, []byte(evil), 0o600))
			p.must(os.Symlink(outside, file))
		}, "symbolic link"},
		"a link inside": {func(p *fixture, file string) {
			p.must(os.WriteFile(filepath.Join(p.project, "other.json5"), []byte(evil), 0o600))
			p.must(os.Symlink("other.json5", file))
		}, "symbolic link"},
		"a second name": {func(p *fixture, file string) {
			p.write(evil)
			p.must(os.Link(file, filepath.Join(p.dir, "second")))
		}, "hard link"},
		"a pipe":      {func(p *fixture, file string) { p.must(unix.Mkfifo(file, 0o600)) }, "named pipe"},
		"a directory": {func(p *fixture, file string) { p.must(os.Mkdir(file, 0o700)) }, "is a directory"},
		"too large": {func(p *fixture, _ string) {
			p.write(evil + strings.Repeat(" ", trust.MaxSize))
		}, "larger"},
		"too deep": {func(p *fixture, _ string) {
			p.write(strings.Repeat("{a:", 100000) + strings.Repeat("}", 100000))
		}, "nested more than 200 levels"},
		"not a configuration": {func(p *fixture, _ string) { p.write(`{agents: {defualts: {}}}`) }, "not a good configuration"},
		"another owner": {func(p *fixture, file string) {
			p.write(evil)
			need.Root(p, "it gives a file away")
			p.must(os.Chown(file, 54324, 54324))
		}, "belongs to user 54324"},
		"writable by the group": {func(p *fixture, file string) { p.write(evil); p.must(os.Chmod(file, 0o660)) }, "mode 0660"},
		"writable by all":       {func(p *fixture, file string) { p.write(evil); p.must(os.Chmod(file, 0o666)) }, "mode 0666"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			c.make(p, filepath.Join(p.project, trust.FileName))
			o := p.open()
			if o.Found == nil || o.Found.Trusted || o.Found.Project != nil || !strings.Contains(o.Found.Why, c.why) {
				t.Errorf("found %+v, want a refusal with %q", o.Found, c.why)
			}
			if got := image(t, o); got != builtin {
				t.Errorf("the file set the image to %s", got)
			}
		})
	}
}

// TestSandboxDirectories: what lies where sandboxes write is refused.
func TestSandboxDirectories(t *testing.T) {
	for _, dir := range []string{"state/sandboxes/agent-main-x", "state/runs/run-1/workspace", "state/workspace", "copies/x"} {
		t.Run(dir, func(t *testing.T) {
			p := newPlace(t)
			p.must(os.MkdirAll(p.state, 0o700))
			own := `{agents: {defaults: {sandbox: {mode: "all", workspaceRoot: "` + filepath.Join(p.dir, "copies") + `"}}}}`
			p.must(os.WriteFile(filepath.Join(p.state, trust.FileName), []byte(own), 0o600))
			p.env.Cwd = filepath.Join(p.dir, dir)
			p.must(os.MkdirAll(p.env.Cwd, 0o700))
			p.write(evil)
			if o := p.open(); o.Found == nil || o.Found.Project != nil || !strings.Contains(o.Found.Why, "where sandboxes write") {
				t.Errorf("found %+v", o.Found)
			}
		})
	}
}

// TestUntrustedNarrows: an untrusted file denies tools and sets no image.
func TestUntrustedNarrows(t *testing.T) {
	p := newPlace(t)
	p.write(evil)
	o := p.open()
	a, err := o.Config.Resolve("")
	p.must(err)
	if a.Sandbox.Docker.Image != builtin || a.Sandbox.Mode != config.ModeAll || len(a.AllTools.Project.Deny) != 1 {
		t.Errorf("got %+v", a)
	}
	if o.Location.Path != "" || len(o.Found.Project.Ignored) != 1 || o.Found.Project.Ignored[0].Path != "agents.defaults.sandbox.docker.image" {
		t.Errorf("location %+v, ignored %+v", o.Location, o.Found.Project.Ignored)
	}
}

// TestNamedFilesStandAlone: a file that a person named is not narrowed, and the
// working directory is not looked into.
func TestNamedFilesStandAlone(t *testing.T) {
	p := newPlace(t)
	p.write(evil)
	p.env.Explicit = filepath.Join(p.project, trust.FileName)
	if o := p.open(); o.Found != nil || image(t, o) != "evil:1" {
		t.Errorf("found %+v, image %s", o.Found, image(t, o))
	}
}
