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

// pooledLayouts are the layouts of a sandbox in a pool and of a session, below two roots.
func pooledLayouts(t *testing.T) (pooled, own workspace.Layout) {
	t.Helper()
	dir := t.TempDir()
	layout := func(root, slug string) workspace.Layout {
		l, err := workspace.NewLayout(workspace.Params{
			Access: config.AccessNone, AgentDir: filepath.Join(dir, "agent"), AgentDirIsDefault: true, Root: filepath.Join(dir, root), Slug: slug, Temporary: slug == "pool-1",
		})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return layout("a", "pool-1"), layout("b", "own-1")
}

// The directory of a pool becomes the copy of a session: the same one, and not temporary.
func TestAdopt(t *testing.T) {
	pooled, own := pooledLayouts(t)
	if err := workspace.MakeEmpty(t.Context(), pooled, workspace.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := workspace.MakeEmpty(t.Context(), pooled, workspace.Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made twice: %v", err)
	}
	before, err := os.Stat(pooled.SandboxDir)
	if err != nil {
		t.Fatal(err)
	}
	if left, err := workspace.Temporaries(pooled.Root); len(left) != 1 || err != nil {
		t.Errorf("%d temporary copies, %v", len(left), err)
	}
	if err := workspace.Adopt(t.Context(), own, pooled); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(own.SandboxDir)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("another directory, %v", err)
	}
	if left, err := workspace.Temporaries(pooled.Root); len(left) != 0 || err != nil {
		t.Errorf("%d temporary copies, %v", len(left), err)
	}
	if report, err := workspace.Prepare(t.Context(), own, workspace.Options{}); err != nil || report.CopyCreated {
		t.Errorf("%+v, %v", report, err)
	}
}

// A directory that holds something, or a copy that is there, stays as it is.
func TestAdoptRefuses(t *testing.T) {
	pooled, own := pooledLayouts(t)
	if err := workspace.MakeEmpty(t.Context(), pooled, workspace.Options{}); err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(pooled.SandboxDir, "planted")
	if err := os.WriteFile(planted, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Adopt(t.Context(), own, pooled); !errors.Is(err, workspace.ErrNotEmpty) {
		t.Errorf("one that is not empty: %v", err)
	}
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Prepare(t.Context(), own, workspace.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Adopt(t.Context(), own, pooled); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over a copy: %v", err)
	}
	if _, err := os.Stat(pooled.SandboxDir); err != nil {
		t.Error(err)
	}
}
