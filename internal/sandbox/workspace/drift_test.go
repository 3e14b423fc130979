package workspace_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func TestDrift(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(t *testing.T, h house)
		want   workspace.Drift
	}{
		"none": {func(*testing.T, house) {}, workspace.Drift{}},
		"the agent wrote": {func(t *testing.T, h house) { write(t, filepath.Join(h.copy, "SOUL.md"), "other") },
			workspace.Drift{Modified: []string{"SOUL.md"}}},
		"the agent wrote, same length": {func(t *testing.T, h house) { write(t, filepath.Join(h.copy, "SOUL.md"), "Content of SOUL.md") },
			workspace.Drift{Modified: []string{"SOUL.md"}}},
		"the agent removed": {func(t *testing.T, h house) { must(t, os.Remove(filepath.Join(h.copy, "BOOTSTRAP.md"))) },
			workspace.Drift{Deleted: []string{"BOOTSTRAP.md"}}},
		"the source changed": {func(t *testing.T, h house) { write(t, filepath.Join(h.agent, "USER.md"), "moved") },
			workspace.Drift{Stale: []string{"USER.md"}}},
		"the source is gone": {func(t *testing.T, h house) { must(t, os.Remove(filepath.Join(h.agent, "USER.md"))) },
			workspace.Drift{Stale: []string{"USER.md"}}},
		"the source workspace is gone": {func(t *testing.T, h house) { must(t, os.RemoveAll(h.agent)) },
			workspace.Drift{Stale: []string{"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md", "HEARTBEAT.md"}}},
		"both changed": {func(t *testing.T, h house) {
			write(t, filepath.Join(h.copy, "SOUL.md"), "a")
			write(t, filepath.Join(h.agent, "SOUL.md"), "b")
		}, workspace.Drift{Modified: []string{"SOUL.md"}, Stale: []string{"SOUL.md"}}},
		"memory": {func(t *testing.T, h house) { write(t, filepath.Join(h.copy, "MEMORY.md"), "learned") },
			workspace.Drift{Modified: []string{"MEMORY.md"}}},
		"memory as in the source": {func(t *testing.T, h house) {
			write(t, filepath.Join(h.copy, "MEMORY.md"), "learned")
			write(t, filepath.Join(h.agent, "MEMORY.md"), "learned")
		}, workspace.Drift{}},
		"memory only in the source": {func(t *testing.T, h house) { write(t, filepath.Join(h.agent, "MEMORY.md"), "learned") },
			workspace.Drift{}},
		"exchanged for a link to the source": {func(t *testing.T, h house) {
			must(t, os.Remove(filepath.Join(h.copy, "SOUL.md")))
			must(t, os.Symlink(filepath.Join(h.agent, "SOUL.md"), filepath.Join(h.copy, "SOUL.md")))
		}, workspace.Drift{Modified: []string{"SOUL.md"}}},
		"exchanged for a pipe": {func(t *testing.T, h house) {
			must(t, os.Remove(filepath.Join(h.copy, "SOUL.md")))
			must(t, unix.Mkfifo(filepath.Join(h.copy, "SOUL.md"), 0o644))
		}, workspace.Drift{Modified: []string{"SOUL.md"}}},
		"grown beyond the limit": {func(t *testing.T, h house) {
			must(t, os.Truncate(filepath.Join(h.copy, "SOUL.md"), 1<<40))
		}, workspace.Drift{Modified: []string{"SOUL.md"}}},
		"work files do not count": {func(t *testing.T, h house) { write(t, filepath.Join(h.copy, "main.go"), "package main") },
			workspace.Drift{}},
		"no copy": {func(t *testing.T, h house) { must(t, os.RemoveAll(h.copy)) }, workspace.Drift{}},
		"no root": {func(t *testing.T, h house) { must(t, os.RemoveAll(h.root)) }, workspace.Drift{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			seedAll(t, h)
			h.prepare()
			tc.change(t, h)
			got, err := workspace.DriftOf(h.layout(config.AccessNone))
			must(t, err)
			same(t, "drift", got, tc.want)
			same(t, "none", got.None(), len(tc.want.Modified)+len(tc.want.Deleted)+len(tc.want.Stale) == 0)
		})
	}
}

// A reader of many reads the files of an agent workspace once.
func TestDriftReaderReadsSourcesOnce(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	reader := new(workspace.DriftReader)
	for _, step := range []string{"before the change", "after it"} {
		read, err := reader.Drift(h.layout(config.AccessNone))
		must(t, err)
		same(t, step, read, workspace.Drift{})
		write(t, filepath.Join(h.agent, "SOUL.md"), "changed since")
	}
	fresh, err := workspace.DriftOf(h.layout(config.AccessNone))
	must(t, err)
	same(t, "fresh", fresh, workspace.Drift{Stale: []string{"SOUL.md"}})
}

func TestDriftUnderRWIsNone(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	write(t, filepath.Join(h.copy, "SOUL.md"), "other")
	got, err := workspace.DriftOf(h.layout(config.AccessRW))
	if err != nil || !got.None() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestEvolvedInCopy(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	evolved := func(access config.Access) []string {
		t.Helper()
		got, err := workspace.EvolvedInCopy(h.layout(access))
		must(t, err)
		return got
	}
	write(t, filepath.Join(h.copy, "TOOLS.md"), "not its character")
	same(t, "without its character", len(evolved(config.AccessNone)), 0)
	for _, name := range []string{"SOUL.md", "IDENTITY.md", "MEMORY.md"} {
		write(t, filepath.Join(h.copy, name), "who I am")
	}
	same(t, "none", evolved(config.AccessNone), []string{"SOUL.md", "IDENTITY.md", "MEMORY.md"})
	same(t, "ro", len(evolved(config.AccessRO)), 0)
	same(t, "rw", len(evolved(config.AccessRW)), 0)
}
