package openclawtest

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// The versions that scripts/openclaw.sh knows.
const (
	Current = "2026.9.6"
	Earlier = "2026.2.26"
)

const defaultRoot = "/var/tmp/atoll-openclaw"

// patience is how long OpenClaw has to end when it is told to.
const patience = 10 * time.Second

// Peer is an installed OpenClaw.
type Peer struct {
	node, program, cache string
}

// Root is the directory of a version, whether it is installed or not.
func Root(version string, getenv func(string) string) string {
	return filepath.Join(cmp.Or(getenv("ATOLL_OPENCLAW_DIR"), defaultRoot), version)
}

// Find returns the OpenClaw of a version, or says how to get it.
func Find(version string, getenv func(string) string) (*Peer, error) {
	dir := Root(version, getenv)
	root, modules := filepath.Dir(dir), filepath.Join(dir, "node_modules")
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		return nil, errhint.With(fmt.Errorf("OpenClaw %s is not installed in %s", version, root), "run scripts/openclaw.sh up "+version)
	}
	return &Peer{
		node: filepath.Join(modules, ".bin", "node"), program: filepath.Join(modules, "openclaw", "openclaw.mjs"),
		cache: filepath.Join(root, "compiled"),
	}, nil
}

// Home is one user's OpenClaw: his directory, his docker, his model.
type Home struct {
	Dir    string
	Docker string   // the program that OpenClaw finds as docker
	Env    []string // for that program
	Model  string   // base URL
	Hosts  string   // the file that it has as /etc/hosts; "": that of this machine
}

// Prepare writes the configuration and puts docker where OpenClaw looks.
func (h *Home) Prepare(access string) error {
	text := strings.NewReplacer("$MODEL", h.Model, "$WORKSPACE", h.Workspace(), "$ACCESS", access).Replace(configText)
	if err := h.Configure([]byte(text)); err != nil {
		return err
	}
	return os.Symlink(h.Docker, filepath.Join(h.bin(), "docker"))
}

// Configure writes a configuration of the caller's; there is no docker.
func (h *Home) Configure(config []byte) error {
	for _, dir := range []string{h.bin(), h.Workspace(), h.hollow()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(h.config(), config, 0o600)
}

const configText = `{
  "models": {"mode": "replace", "providers": {"scripted": {
    "baseUrl": "$MODEL", "apiKey": "none", "api": "openai-completions", "models": [{"id": "m", "name": "m"}]}}},
  "plugins": {"enabled": false},
  "gateway": {"mode": "local"},
  "agents": {"defaults": {
    "model": {"primary": "scripted/m"}, "workspace": "$WORKSPACE", "skipBootstrap": true,
    "sandbox": {"mode": "all", "scope": "agent", "workspaceAccess": "$ACCESS"}}}
}
`

func (h *Home) bin() string    { return filepath.Join(h.Dir, "bin") }
func (h *Home) state() string  { return filepath.Join(h.Dir, ".openclaw") }
func (h *Home) config() string { return filepath.Join(h.state(), "openclaw.json") }
func (h *Home) hollow() string { return filepath.Join(h.Dir, "hollow") }

// Workspace is the agent's.
func (h *Home) Workspace() string { return filepath.Join(h.state(), "workspace") }

// Run runs one openclaw command line and returns what it printed.
func (p *Peer) Run(ctx context.Context, h *Home, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := p.command(ctx, h, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("openclaw %s: %w\n%s%s", strings.Join(args, " "), err, tail(stdout.String()), tail(stderr.String()))
	}
	return stdout.String(), nil
}

func (p *Peer) command(ctx context.Context, h *Home, args ...string) *exec.Cmd {
	argv := append([]string{p.node, p.program}, args...)
	if looksLikeContainer() {
		argv = append([]string{"unshare", "--mount", "sh", "-c", plainRoot, "sh", h.hollow()}, argv...)
	}
	if h.Hosts != "" {
		argv = append([]string{"unshare", "--mount", "sh", "-c", `mount --bind "$1" /etc/hosts; shift; exec "$@"`, "sh", h.Hosts}, argv...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.environment(h), h.Dir, patience
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// environment is all that OpenClaw is told: nothing of its caller's.
func (p *Peer) environment(h *Home) []string {
	return append([]string{
		"HOME=" + h.Dir, "PATH=" + h.bin() + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "NO_COLOR=1",
		"OPENCLAW_STATE_DIR=" + h.state(), "OPENCLAW_CONFIG_PATH=" + h.config(), "OPENCLAW_NO_RESPAWN=1",
		"OPENCLAW_PATH_BOOTSTRAPPED=1", // else it puts other directories before ours
		"NODE_COMPILE_CACHE=" + p.cache,
	}, h.Env...)
}

// maxTail is how much of OpenClaw's words an error shows.
const maxTail = 4000

func tail(text string) string { return text[max(0, len(text)-maxTail):] }

// plainRoot runs a command where a host that only looks like a container does
// not: OpenClaw would want to inspect the container that it thinks it is in.
//
//go:embed plainroot.sh
var plainRoot string

func looksLikeContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return false
}
