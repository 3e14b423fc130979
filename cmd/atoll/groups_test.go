//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/atoll-run/atoll/internal/testkit/grouptest"
)

// withoutGroups is what a user sees to whom no control group was delegated.
const withoutGroups = `
# Limits that nobody configured are left out, and that is said.
atoll run -- true
atoll sandbox explain
stdout '^  not limited +memory and processes: this user cannot make control groups; see atoll doctor$'
atoll sandbox explain --json
json stdout sandbox.defaultLimits.memory is 0
json stdout sandbox.defaultLimits.missing matches 'control groups'
exec sh -c 'atoll doctor || true'
stdout 'limits'
stdout 'left out of the defaults: pidsLimit, memory'

# What a run's agent is made for is a default too.
atoll --config runs.json5 runs start --variant quick -m x --run-id r1
stdout done

# Limits that were configured are refused, with what to do, and not with an engine.
exits 125 atoll --config limited.json5 run -- true
stderr 'docker.memory: memory cannot be limited: this user has no control group to make others in'
stderr '^hint: .*(systemd-run --user --scope|run as root)'
! stderr 'start Docker'
exits 2 atoll --config runs.json5 runs start --variant quick -m x --run-id r2 --memory 8g
stderr 'at most 1024 MiB of memory, and 8192 are asked for'

-- agent/AGENTS.md --
-- limited.json5 --
{ agents: { defaults: { sandbox: { mode: "all", docker: { containerPrefix: "limited-", memory: "2g" } } } } }
-- runs.json5 --
{
  agents: {defaults: {workspace: "agent", sandbox: {mode: "all"}}},
  runs: {variants: {quick: {argv: ["/bin/echo", "done"], read: "text"}}},
}
`

// TestWithoutGroups runs the script as an ordinary user.
func TestWithoutGroups(t *testing.T) {
	if grouptest.Missing() == nil {
		return // TestWithoutGroupsAsUser does it
	}
	file := filepath.Join(t.TempDir(), "limits.txtar")
	if err := os.WriteFile(file, []byte(withoutGroups), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files: []string{file}, Cmds: commands(),
		Setup: func(env *testscript.Env) error {
			env.Defer(func() { removeSandboxes(t, env) })
			return setUp(env, nowhere)
		},
	})
}

// An ordinary user without control groups works with sandboxes that have no
// limits, and is told so.
func TestWithoutGroupsAsUser(t *testing.T) { asSomeone(t, "TestWithoutGroups", nil) }
