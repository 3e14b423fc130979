//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/fakellm"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// repositoryFiles is how many files the repository of these tests has: too many for a
// copy to be chosen.
const repositoryFiles = 10_000

const (
	testToken = "sk-ant-oat01-0123456789-of-a-subscription"
	testKey   = "sk-0123456789-of-the-host"
	googleKey = "AIza-0123456789-of-the-host"
)

// agentPlace is a repository and an installation without a configuration, and models
// that play a script.
type agentPlace struct {
	t               *testing.T
	dir, repository string
	env             []string
	claude, codex   *fakellm.Server
	gemini          *fakellm.Server
}

func newAgentPlace(t *testing.T, files int) *agentPlace {
	t.Helper()
	dir, err := os.MkdirTemp("", "a") //nolint:usetesting // sockets below it need a short path
	if err != nil {
		t.Fatal(err)
	}
	p := &agentPlace{t: t, dir: dir, repository: filepath.Join(dir, "shop")}
	t.Cleanup(p.remove)
	p.makeRepository(files)
	p.claude = p.serve(fakellm.Use("Bash", `{"command":"`+agentScript("claude")+`","description":"Make a file"}`))
	p.codex = p.serve(fakellm.Use("exec_command", `{"cmd":"`+agentScript("codex")+`"}`))
	p.gemini = p.serve(fakellm.Use("run_shell_command", `{"command":"`+agentScript("gemini")+`","description":"Make a file"}`))
	p.env = []string{
		"HOME=" + filepath.Join(dir, "home"), "ATOLL_STATE_DIR=" + filepath.Join(dir, "state"), "DOCKER_HOST=" + nowhere, "CONTAINER_HOST=" + nowhere,
		"PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "CLAUDE_CODE_OAUTH_TOKEN=" + testToken, "OPENAI_API_KEY=" + testKey,
		"ANTHROPIC_BASE_URL=" + strings.TrimSuffix(p.claude.BaseURL(), "/v1"), "OPENAI_BASE_URL=" + p.codex.BaseURL(),
		"GEMINI_API_KEY=" + googleKey, "GOOGLE_GEMINI_BASE_URL=" + strings.TrimSuffix(p.gemini.BaseURL(), "/v1"), "GORACE=atexit_sleep_ms=0",
	}
	return p
}

// savedFile is what a person saves in a large repository while Claude Code works.
const savedFile = "2/2.txt"

// agentScript is what an agent is told to run: a new file, a commit and a changed file.
// Claude Code waits for the saved file first.
func agentScript(name string) string {
	wait := ""
	if name == "claude" {
		wait = "while test -e /workspace/" + savedFile + " && ! grep -qx saved /workspace/" + savedFile + "; do sleep 0.1; done; "
	}
	git := "git -c user.name=a -c user.email=a@b.example"
	if name == "gemini" {
		git = "git" // the name of the home inside is enough
	}
	return wait + "echo made by " + name + " >" + name + ".txt && git add " + name + ".txt && " + git + " commit -qm made && echo more >>/workspace/0/0.txt && env"
}

func (p *agentPlace) serve(turn fakellm.Turn) *fakellm.Server {
	p.t.Helper()
	server, err := fakellm.Listen(context.WithoutCancel(p.t.Context()), "tcp", "127.0.0.1:0", fakellm.Script{turn, fakellm.Say("it is made")})
	if err != nil {
		p.t.Fatal(err)
	}
	server.BeginAnew()
	p.t.Cleanup(func() { _ = server.Close() })
	return server
}

func (p *agentPlace) makeRepository(files int) {
	p.t.Helper()
	for i := range files {
		file := filepath.Join(p.repository, fmt.Sprint(i/100), fmt.Sprint(i%100)+".txt")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(fmt.Sprintln("file", i)), 0o644)); err != nil {
			p.t.Fatal(err)
		}
	}
	git := exec.CommandContext(p.t.Context(), "sh", "-ec", "git init -q . && git add . && git config maintenance.auto false && git -c user.name=a -c user.email=a@b.example commit -qm begun")
	git.Dir, git.Env = p.repository, append(os.Environ(), "HOME="+p.dir)
	if out, err := git.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
	if err := os.Mkdir(filepath.Join(p.dir, "home"), 0o700); err != nil {
		p.t.Fatal(err)
	}
}

// remove ends the sandboxes, and removes everything.
func (p *agentPlace) remove() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), cleanupTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "atoll", "sandbox", "recreate", "--all", "--force", "--discard")
	cmd.Dir, cmd.Env = p.dir, p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Errorf("sandboxes: %v: %s", err, out)
	}
	_ = exec.CommandContext(ctx, "chmod", "-R", "u+rwX", p.dir).Run() // the kernel's working directories have mode 0
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Error(err)
	}
}

// run calls atoll in a directory of the repository.
func (p *agentPlace) run(sub string, args ...string) (out, said string, err error) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "atoll", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Join(p.repository, sub), p.env, &stdout, &stderr
	err = cmd.Run()
	return stdout.String(), stderr.String(), err
}

// must is run for a call that has to succeed.
func (p *agentPlace) must(sub string, args ...string) (out, said string) {
	p.t.Helper()
	out, said, err := p.run(sub, args...)
	if err != nil {
		p.t.Fatalf("atoll %q: %v\n%s%s", args, err, out, said)
	}
	return out, said
}

// snapshot is everything that can be seen of the repository: names, bytes, modes,
// times, owners, inodes and extended attributes.
func (p *agentPlace) snapshot() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		var content []byte
		if entry.Type().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		names := make([]byte, 4096)
		n, _ := unix.Llistxattr(path, names) // none where the file system has none
		all[path] = fmt.Sprintf("%o %d %d %d %d.%d %d.%d %q %q", st.Mode, st.Uid, st.Gid, st.Ino, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec, names[:max(n, 0)], content)
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return all
}

// same reports every difference between two snapshots.
func same(t *testing.T, before, after map[string]string) {
	t.Helper()
	for path, was := range before {
		if is := after[path]; is != was {
			t.Errorf("%s was %s and is %s", path, was, is)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

// installedAgents is the search path with the agents of scripts/sdks.sh before it.
func installedAgents(t *testing.T) string {
	t.Helper()
	need.Time(t, "it runs the agents that npm has installed")
	if dir := os.Getenv(agentsDirVariable); dir != "" {
		return dir + ":" + os.Getenv("PATH")
	}
	out, err := exec.CommandContext(t.Context(), "../../scripts/sdks.sh", "dir", "agents").Output()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(strings.TrimSpace(string(out)), "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, "claude")); err != nil {
		need.Missing(t, fmt.Errorf("%w: run scripts/sdks.sh up agents", err))
	}
	return bin + ":" + os.Getenv("PATH")
}

// agentsDirVariable says where the agents are, for a test as another user.
const agentsDirVariable = "ATOLL_TEST_AGENTS_DIR"
