package run

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/agent/envelope"
	"github.com/atoll-run/atoll/internal/run/openclaw"
	"github.com/atoll-run/atoll/internal/runtime/image"
)

// OpenClawOptions say which OpenClaw there is, and what it may ask.
type OpenClawOptions struct {
	Image string
	// Install is a directory of the host with an npm installation, Node included:
	// it is mounted, in place of what the image has in /app.
	Install string
	Models  []openclaw.Model // the catalogue
	// Closed means that only models of the catalogue can be asked for. Otherwise
	// the one that a run names is added: the proxy decides.
	Closed bool
	Agents openclaw.Dialect
	// MessageFile says that the release reads a message from a file; the earlier
	// ones take it as an argument, which the kernel bounds.
	MessageFile bool
}

// maxArgument is the longest single argument that Linux takes, with its end.
const maxArgument = 128<<10 - 1

// PnpmStore is the volume with the packages of pnpm.
const PnpmStore = image.StoreVolume

const (
	installDir  = "/opt/openclaw"
	promptFile  = ".cogni/prompt.txt"
	historyFile = ".cogni/history.jsonl"
	configFile  = ".openclaw/openclaw.json"
)

// OpenClawVariant is the id of the variant that OpenClaw returns.
const OpenClawVariant = "sandbox:openclaw"

// OpenClaw is the real OpenClaw, in its image, for one task.
func OpenClaw(o OpenClawOptions) Variant {
	return Variant{
		ID: OpenClawVariant, Name: "OpenClaw", Description: "The OpenClaw agent in a sandbox of its own, for one task",
		Image: o.Image, Timeout: 600 * time.Second, Margin: 60 * time.Second, Memory: 1024 << 20, User: "1001:1001",
		Mounts: o.mounts(), Volumes: []string{PnpmStore}, Argv: o.argv, Env: openclawEnv, Files: o.files, Read: envelope.Parse,
	}
}

func (o OpenClawOptions) mounts() []Mount {
	if o.Install == "" {
		return nil
	}
	return []Mount{{o.Install, installDir}}
}

// program is Node and OpenClaw, where they are inside.
func (o OpenClawOptions) program() []string {
	if o.Install == "" {
		return []string{"node", plainWASM, "/app/dist/index.js"}
	}
	return []string{installDir + "/node_modules/.bin/node", plainWASM, installDir + "/node_modules/openclaw/openclaw.mjs"}
}

// plainWASM keeps Node from compiling OpenClaw's WebAssembly a second time, to
// make it faster: that takes more memory than all the rest, and a task is over
// before it pays.
const plainWASM = "--liftoff-only"

func (o OpenClawOptions) argv(j *Job) ([]string, error) {
	argv := append(o.program(), "agent", "--local", "--agent", "main", "--session-id", j.ID)
	if o.MessageFile {
		argv = append(argv, "--message-file", j.Workspace+"/"+promptFile)
	} else {
		if len(j.Task()) > maxArgument {
			return nil, fail("prompt_too_large", "the task has %d bytes; this release of OpenClaw takes at most %d", len(j.Task()), maxArgument)
		}
		argv = append(argv, "--message="+j.Task()) // one word: a task may begin with a dash
	}
	return append(argv, "--json", "--timeout", strconv.Itoa(int(j.Inner/time.Second))), nil
}

func openclawEnv(j *Job) map[string]string {
	return map[string]string{
		"HOME":                    j.Workspace,
		"OPENCLAW_CONFIG_PATH":    j.Workspace + "/" + configFile,
		"OPENCLAW_STATE_DIR":      j.Workspace + "/.openclaw-state",
		"OPENCLAW_LOAD_SHELL_ENV": "0",
		"OPENCLAW_NO_RESPAWN":     "1", // it would start itself a second time
		"NO_COLOR":                "1",
		// Its native file helper needs openat2, which no sandbox has that can write
		// to a directory of the host.
		"OPENCLAW_FS_SAFE_NATIVE_MODE": "off",
		// Node would let its heap grow to what the sandbox has, and be killed for
		// all that it has besides.
		"NODE_OPTIONS": fmt.Sprintf("--max-old-space-size=%d --max-semi-space-size=4", j.Memory>>20*2/5),
	}
}

func (o OpenClawOptions) files(j *Job) ([]File, error) {
	models, err := o.catalogue(j)
	if err != nil {
		return nil, fail("unknown_model", "%v", err)
	}
	config, err := openclaw.Config(openclaw.Options{Mode: openclaw.Ephemeral, Model: j.Model, Models: models, Agents: o.Agents})
	if err != nil {
		return nil, fail("unknown_model", "%v", err)
	}
	history, err := history(j)
	if err != nil {
		return nil, err
	}
	return []File{
		{Path: configFile, Mode: 0o600, Data: config},
		{Path: promptFile, Mode: 0o600, Data: []byte(j.Task())},
		{Path: historyFile, Mode: 0o600, Data: history},
		{Path: "AGENTS.md", Mode: 0o644, Data: []byte(openclawAgents), Default: true},
		{Path: "SOUL.md", Mode: 0o644, Data: []byte(openclawSoul), Default: true},
		{Path: "TOOLS.md", Mode: 0o644, Data: []byte(openclawTools), Default: true},
	}, nil
}

// catalogue has the model of the run, unless it is closed.
func (o OpenClawOptions) catalogue(j *Job) ([]openclaw.Model, error) {
	if o.Closed || slices.ContainsFunc(o.Models, func(m openclaw.Model) bool { return m.ID == j.Model }) {
		return o.Models, nil
	}
	entry, err := openclaw.Entry(j.Model, j.Window, j.MaxTokens)
	return append(slices.Clone(o.Models), entry), err
}

// history is what was said before the task, a line each.
func history(j *Job) ([]byte, error) {
	var b bytes.Buffer
	for i := range j.Messages[:len(j.Messages)-1] {
		line, err := json.Marshal(&j.Messages[i])
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes(), nil
}

// The behaviour files of an agent whose owner wrote none. They promise what is
// there: no network, no token.
const (
	openclawAgents = `# How to work here

You are a coding agent in a sandbox. You have a shell and tools to read, write and
edit files below /workspace. There is no network, and no credential is here or
will be. What was said before your task is in .cogni/history.jsonl, a message a line.
Commit your work with git where there is a repository; it is taken out for you.
`
	openclawTools = `# Tools here

- git commits need no remote and no credential: do not push, your commits are taken out for you.
- web_fetch, web_search and browser are not available, nor are package registries.
- memory_search and memory_get read MEMORY.md and memory/*.md in /workspace.
`
	openclawSoul = `Be direct and concise. Write clean code. Say what you did, and what you did not.
`
)
