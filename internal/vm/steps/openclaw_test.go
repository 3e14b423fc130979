package steps_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/vm/steps"
)

// shell runs scripts as a virtual machine would, in this one.
type shell struct{}

func (shell) Run(ctx context.Context, script string, in io.Reader) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-euc", script)
	cmd.Stdin = in
	out, err := cmd.Output()
	return string(out), err
}

const openClawFile = `{
  // my agents
  agents: {
    defaults: { workspace: "~/w", sandbox: { mode: "off", /* later */ extra: [1, 2] } },
    list: [{ id: "main" }], // one
  },
  unknown: { key: 0x10, },
}
`

// openclaw.json keeps comments and keys that are not known; the same change twice gives
// the same bytes, and what was replaced is beside it.
func TestOpenClawFileIsMerged(t *testing.T) {
	dir := t.TempDir()
	path, begin := filepath.Join(dir, "openclaw.json"), filepath.Join(dir, "mounted.json")
	if err := os.WriteFile(begin, []byte(openClawFile), 0o600); err != nil {
		t.Fatal(err)
	}
	owner := userName(t)
	list := []steps.Step{{Name: "sandbox", Edits: []*steps.Edit{{Path: path, Begin: begin, Owner: owner, To: steps.MergeOpenClaw}}}}
	run := func(want steps.Result) string {
		t.Helper()
		if err := steps.Run(t.Context(), shell{}, list, "", func(_ *steps.Step, r steps.Result) {
			if r != want {
				t.Errorf("%s, want %s", r, want)
			}
		}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := run(steps.Changed)
	if second := run(steps.Unchanged); first != second {
		t.Errorf("twice is not once: %s", second)
	}
	for _, kept := range []string{"// my agents\n", "/* later */ extra: [1, 2]", "// one\n", "unknown: { key: 0x10, },\n", `workspace: "~/w"`} {
		if !strings.Contains(first, kept) {
			t.Errorf("%q is gone: %s", kept, first)
		}
	}
	c, err := config.Parse("openclaw.json", []byte(strings.Replace(first, "extra: [1, 2],", "", 1)), config.Environment{Home: "/root"})
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.Resolve("main"); err != nil || a.Sandbox.Mode != config.ModeAll || a.Sandbox.Docker.Network != "none" || a.Sandbox.Scope != config.ScopeSession {
		t.Errorf("%+v %v", a, err)
	}
	changed := strings.Replace(first, `"all"`, `"off"`, 1)
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if third := run(steps.Changed); third != first {
		t.Errorf("%s", third)
	}
	if backup, err := os.ReadFile(path + ".before-atoll"); err != nil || string(backup) != changed {
		t.Errorf("%q %v", backup, err)
	}
}

// userName returns user:group of this process.
func userName(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "echo $(id -un):$(id -gn)").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
