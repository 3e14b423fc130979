package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func (h house) layoutOf(slug string, access config.Access) workspace.Layout {
	h.t.Helper()
	p := h.params(access)
	p.Slug = slug
	l, err := workspace.NewLayout(p)
	must(h.t, err)
	return l
}

func TestForkCopiesTheCopyAndItsRecord(t *testing.T) {
	h := newHouse(t)
	must(t, os.WriteFile(filepath.Join(h.agent, "SOUL.md"), []byte("soul"), 0o600))
	h.prepare()
	outside := filepath.Join(h.base, "outside")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	must(t, os.WriteFile(filepath.Join(h.copy, "SOUL.md"), []byte("changed"), 0o600))
	must(t, os.MkdirAll(filepath.Join(h.copy, "src"), 0o755))
	must(t, os.WriteFile(filepath.Join(h.copy, "src/main.go"), []byte("package main"), 0o644))
	must(t, os.Symlink(outside, filepath.Join(h.copy, "link")))
	to := h.layoutOf("agent-main-fork-0123abcd", config.AccessNone)
	must(t, workspace.Fork(t.Context(), h.layout(config.AccessNone), to, false))

	if got, err := os.ReadFile(filepath.Join(to.SandboxDir, "src/main.go")); string(got) != "package main" {
		t.Errorf("file = %q, %v", got, err)
	}
	if to, err := os.Readlink(filepath.Join(to.SandboxDir, "link")); to != outside {
		t.Errorf("the link was followed: %q, %v", to, err)
	}
	drift, err := workspace.DriftOf(to)
	if err != nil || len(drift.Modified) != 1 || drift.Modified[0] != "SOUL.md" {
		t.Errorf("drift = %+v, %v", drift, err)
	}
	must(t, os.WriteFile(filepath.Join(to.SandboxDir, "src/main.go"), []byte("other"), 0o644))
	if got, _ := os.ReadFile(filepath.Join(h.copy, "src/main.go")); string(got) != "package main" {
		t.Error("the fork writes to the original")
	}
	if err := workspace.Fork(t.Context(), h.layout(config.AccessNone), to, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto a copy that is there: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(h.root, ".atoll/forks")); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSweepRemovesForksThatDidNotFinish(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	half := filepath.Join(h.root, ".atoll/forks/agent-main-half-0123abcd")
	must(t, os.MkdirAll(half, 0o700))
	must(t, os.WriteFile(filepath.Join(half, "f"), nil, 0o600))
	must(t, workspace.Sweep(t.Context(), h.root))
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("still there: %v", err)
	}
}

func TestForkWithoutCopiesDoesNothing(t *testing.T) {
	h := newHouse(t)
	to := h.layoutOf("agent-main-fork-0123abcd", config.AccessRW)
	must(t, workspace.Fork(t.Context(), h.layout(config.AccessRW), to, true))
	if _, err := os.Stat(to.SandboxDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy was made: %v", err)
	}
}
