package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

func changesOf(t *testing.T, h house) workspace.ChangeList {
	t.Helper()
	list, err := workspace.Changes(t.Context(), h.layout(config.AccessNone))
	must(t, err)
	return list
}

func TestChanges(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	same(t, "a fresh copy", changesOf(t, h), workspace.ChangeList{})

	write(t, filepath.Join(h.copy, "SOUL.md"), "changed")
	must(t, os.Remove(filepath.Join(h.copy, "BOOTSTRAP.md")))
	write(t, filepath.Join(h.agent, "USER.md"), "moved")
	write(t, filepath.Join(h.copy, "src", "main.go"), "package main")
	write(t, filepath.Join(h.copy, "MEMORY.md"), "learned")
	must(t, os.Mkdir(filepath.Join(h.copy, "empty"), 0o755))
	must(t, os.Symlink(h.base, filepath.Join(h.copy, "out")))
	must(t, unix.Mkfifo(filepath.Join(h.copy, "pipe"), 0o644))
	must(t, os.Remove(filepath.Join(h.copy, "TOOLS.md")))
	must(t, os.Mkdir(filepath.Join(h.copy, "TOOLS.md"), 0o755))
	write(t, filepath.Join(h.copy, "TOOLS.md", "SOUL.md"), "x")
	list := changesOf(t, h)
	for i := range list.Changes {
		if list.Changes[i].Type == "directory" || list.Changes[i].Type == "symlink" {
			list.Changes[i].Size = 0 // depends on the file system
		}
	}
	same(t, "changes", list, workspace.ChangeList{Changes: []workspace.Change{
		{Path: "BOOTSTRAP.md", Kind: workspace.Deleted},
		{Path: "MEMORY.md", Kind: workspace.Added, Type: "file", Size: 7},
		{Path: "SOUL.md", Kind: workspace.Modified, Type: "file", Size: 7},
		{Path: "TOOLS.md", Kind: workspace.Modified, Type: "directory"},
		{Path: "TOOLS.md/SOUL.md", Kind: workspace.Added, Type: "file", Size: 1},
		{Path: "USER.md", Kind: workspace.Stale},
		{Path: "out", Kind: workspace.Added, Type: "symlink"},
		{Path: "pipe", Kind: workspace.Added, Type: "fifo"},
		{Path: "src/main.go", Kind: workspace.Added, Type: "file", Size: 12},
	}})
}

func TestChangesEscapesHostileNames(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	for name, want := range map[string]string{
		"esc\x1b[2Jape":     `"esc\x1b[2Jape"`,
		"new\nline":         `"new\nline"`,
		"not\xffutf8":       `"not\xffutf8"`,
		"right\u202eleft":   `"right\u202eleft"`,
		`back\slash`:        `"back\\slash"`,
		`quo"te`:            `"quo\"te"`,
		"日本語 and space.txt": "日本語 and space.txt",
	} {
		write(t, filepath.Join(h.copy, name), "")
		same(t, fmt.Sprintf("%q", name), changesOf(t, h).Changes[0].Path, want)
		must(t, os.Remove(filepath.Join(h.copy, name)))
	}
}

func TestChangesAreBounded(t *testing.T) {
	need.Time(t, "it makes thousands of files")
	h := newHouse(t)
	h.prepare()
	for i := range workspace.MaxChangeEntries + 1 {
		must(t, os.Symlink("x", filepath.Join(h.copy, fmt.Sprint(i))))
	}
	list := changesOf(t, h)
	if len(list.Changes) != workspace.MaxChangeEntries || !list.Truncated {
		t.Errorf("%d changes, truncated %v", len(list.Changes), list.Truncated)
	}
	must(t, os.Remove(filepath.Join(h.copy, "0")))
	list = changesOf(t, h)
	if len(list.Changes) != workspace.MaxChangeEntries || list.Truncated {
		t.Errorf("at the limit: %d changes, truncated %v", len(list.Changes), list.Truncated)
	}
}

func TestChangesAreBoundedInDepth(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	deepest := strings.Repeat("d/", workspace.MaxChangeDepth-1)
	write(t, filepath.Join(h.copy, deepest, "seen"), "")
	if list := changesOf(t, h); len(list.Changes) != 1 || list.Truncated {
		t.Errorf("at the limit: %+v", list)
	}
	write(t, filepath.Join(h.copy, deepest, "d", "unseen"), "")
	if list := changesOf(t, h); len(list.Changes) != 1 || !list.Truncated {
		t.Errorf("beyond the limit: %+v", list)
	}
}

func TestChangesEndWithTheContext(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	write(t, filepath.Join(h.copy, "x"), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := workspace.Changes(ctx, h.layout(config.AccessNone)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestChangesWithoutRightsSaysThatItIsNotAll(t *testing.T) {
	h := ownedHouse(t, 1000)
	asUser(t, 1000, func() {
		h.prepare()
		write(t, filepath.Join(h.copy, "closed", "x"), "")
		must(t, os.Chmod(filepath.Join(h.copy, "closed"), 0))
		if list := changesOf(t, h); len(list.Changes) != 0 || !list.Truncated {
			t.Errorf("got %+v", list)
		}
	})
}
