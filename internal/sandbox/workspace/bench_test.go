package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func benchLayout(b *testing.B) (workspace.Layout, string) {
	b.Helper()
	base := b.TempDir()
	l, err := workspace.NewLayout(workspace.Params{Access: config.AccessNone,
		AgentDir: filepath.Join(base, "agent"), AgentDirIsDefault: true, Root: filepath.Join(base, "sandboxes"), Slug: slug})
	if err == nil {
		_, err = workspace.Prepare(b.Context(), l, workspace.Options{})
	}
	for i := 0; err == nil && i < 20; i++ {
		dir := filepath.Join(l.AgentDir, "skills", fmt.Sprint(i))
		err = os.MkdirAll(dir, 0o755)
		for _, name := range []string{"SKILL.md", "a.md", "b.md"} {
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name), make([]byte, 4096), 0o644)
			}
		}
	}
	for _, name := range seedNames {
		if err == nil {
			err = os.WriteFile(filepath.Join(l.AgentDir, name), make([]byte, 4096), 0o644)
		}
	}
	if err == nil {
		_, err = workspace.Prepare(b.Context(), l, workspace.Options{})
	}
	if err != nil {
		b.Fatal(err)
	}
	return l, base
}

func BenchmarkPrepareUnchanged(b *testing.B) {
	l, _ := benchLayout(b)
	for b.Loop() {
		if _, err := workspace.Prepare(b.Context(), l, workspace.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSyncSkillsUnchanged(b *testing.B) {
	l, _ := benchLayout(b)
	workspace.SyncSkills(b.Context(), l, workspace.SkillOptions{})
	for b.Loop() {
		if r := workspace.SyncSkills(b.Context(), l, workspace.SkillOptions{}); r.Written > 0 || len(r.Warnings) > 0 {
			b.Fatal(r)
		}
	}
}

func BenchmarkSyncSkillsFirst(b *testing.B) {
	l, _ := benchLayout(b)
	for b.Loop() {
		b.StopTimer()
		if err := os.RemoveAll(filepath.Join(l.SandboxDir, "skills")); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if r := workspace.SyncSkills(b.Context(), l, workspace.SkillOptions{}); r.Written != 60 {
			b.Fatal(r)
		}
	}
}

func BenchmarkDrift(b *testing.B) {
	l, _ := benchLayout(b)
	for b.Loop() {
		if _, err := workspace.DriftOf(l); err != nil {
			b.Fatal(err)
		}
	}
}
