//go:build linux

package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

const demoPatience = 3 * time.Minute

// demo runs what `make run` runs, with this program as atoll, and returns what it
// printed.
func demo(t *testing.T, env ...string) (string, error) {
	t.Helper()
	need.Program(t, "jq", "jq")
	ctx, cancel := context.WithTimeout(t.Context(), demoPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", cmp.Or(os.Getenv(demoVariable), demoScript))
	cmd.Env = append(append(os.Environ(), "ATOLL_BIN="+t.TempDir()), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestDemo: somebody who has never seen Atoll sees, in this order, where an agent
// works, what it calls and how long that takes, a test that fails and then
// passes, the commit, and the bill.
func TestDemo(t *testing.T) {
	t.Parallel()
	out, err := demo(t)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := out
	for _, step := range []string{
		`sandbox \S+ \(linux, image host\)`, `network none · no credential`,
		`→ exec \{.*git --version`, `← .*  [0-9.]+ ms`, `→ write`, `✗ exec failed: FAIL: 2 \+ 3 is -1 …  [0-9.]+ ms`, `→ edit`, `← PASS …  [0-9.]+ ms`,
		`← [0-9a-f]+ Add two numbers …  [0-9.]+ ms`, `[0-9]+ tokens`, `\$0\.[0-9]*[1-9]`, `receipt demo\n`, `git -C demo log`, `[0-9a-f]+ Add two numbers\n`, `cost .* 7 calls`,
		`That was all of it, in [0-9]+ seconds`,
	} {
		at := regexp.MustCompile(step).FindStringIndex(rest)
		if at == nil {
			t.Fatalf("%q is missing, or not in its place, in:\n%s", step, out)
		}
		rest = rest[at[1]:]
	}
}

// Without the sandbox, or without a tool, the demo does not say that all is well.
func TestDemoFails(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]string{
		"no sandbox": `DEMO_SANDBOX=backend: "kubernetes"`, "no exec": `DEMO_TOOLS=deny: ["exec"]`, "no write": `DEMO_TOOLS=deny: ["write"]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := demo(t, env); err == nil {
				t.Errorf("it ended well:\n%s", out)
			}
		})
	}
}
