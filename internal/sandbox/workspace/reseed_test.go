package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

func reseed(t *testing.T, h house, discard bool) workspace.Report {
	t.Helper()
	report, err := workspace.Reseed(t.Context(), h.layout(config.AccessNone), workspace.Options{}, discard)
	must(t, err)
	return report
}

// evolve changes a seeded copy and its source in every way.
func evolve(t *testing.T, h house) {
	t.Helper()
	write(t, filepath.Join(h.copy, "SOUL.md"), "what it became")         // by the agent
	write(t, filepath.Join(h.agent, "USER.md"), "moved")                 // by the user
	must(t, os.Remove(filepath.Join(h.copy, "BOOTSTRAP.md")))            // by the agent
	must(t, os.Remove(filepath.Join(h.agent, "HEARTBEAT.md")))           // by the user
	write(t, filepath.Join(h.copy, "MEMORY.md"), "learned")              // by the agent
	write(t, filepath.Join(h.copy, "src", "main.go"), "work")            // by the agent
	must(t, os.Remove(filepath.Join(h.copy, "IDENTITY.md")))             // by the agent …
	must(t, os.Symlink("SOUL.md", filepath.Join(h.copy, "IDENTITY.md"))) // … which put a link there
}

func TestReseedMovesAsideWhatTheAgentChanged(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	evolve(t, h)
	report := reseed(t, h, false)

	if !strings.HasPrefix(report.Aside, filepath.Join(h.root, ".atoll", "aside", slug+"-20")) {
		t.Errorf("aside is %q", report.Aside)
	}
	same(t, "aside", names(t, report.Aside), []string{"IDENTITY.md", "SOUL.md"})
	same(t, "SOUL.md aside", read(t, filepath.Join(report.Aside, "SOUL.md")), "what it became")
	aside := report.Aside
	report.Aside = ""
	same(t, "report", report, workspace.Report{
		Moved:   []string{"SOUL.md", "IDENTITY.md"},
		Seeded:  []string{"SOUL.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md"},
		Kept:    []string{"AGENTS.md", "TOOLS.md"},
		Removed: []string{"HEARTBEAT.md"},
	})
	for _, name := range []string{"AGENTS.md", "BOOTSTRAP.md", "IDENTITY.md", "SOUL.md", "TOOLS.md", "USER.md"} {
		same(t, name, read(t, filepath.Join(h.copy, name)), read(t, filepath.Join(h.agent, name)))
	}
	same(t, "MEMORY.md", read(t, filepath.Join(h.copy, "MEMORY.md")), "learned")
	same(t, "work", read(t, filepath.Join(h.copy, "src", "main.go")), "work")

	again := reseed(t, h, false)
	same(t, "moved the second time", len(again.Moved)+len(again.Seeded), 0)
	same(t, "what was moved aside stays", names(t, aside), []string{"IDENTITY.md", "SOUL.md"})
	drift, err := workspace.DriftOf(h.layout(config.AccessNone))
	must(t, err)
	same(t, "drift", drift, workspace.Drift{Modified: []string{"MEMORY.md"}})
}

func TestReseedDiscardWipesTheCopy(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	evolve(t, h)
	source := snapshot(t, h.agent)
	report := reseed(t, h, true)
	if !report.Discarded || !report.CopyCreated || len(report.Seeded) != 6 {
		t.Errorf("report %+v", report)
	}
	same(t, "the copy", names(t, h.copy), slices.DeleteFunc(slices.Clone(seedNames), func(n string) bool { return n == "HEARTBEAT.md" }))
	same(t, "agent workspace", snapshot(t, h.agent), source)
	same(t, "trash", len(names(t, filepath.Join(h.root, ".atoll", "trash"))), 0)
}

func TestReseedNeverTouchesTheAgentWorkspaceUnderRW(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare() // from an earlier time, under none
	write(t, filepath.Join(h.copy, "MEMORY.md"), "learned")
	before := snapshot(t, h.base)
	for _, discard := range []bool{false, true} {
		report, err := workspace.Reseed(t.Context(), h.layout(config.AccessRW), workspace.Options{}, discard)
		must(t, err)
		same(t, "report", report, workspace.Report{})
	}
	must(t, workspace.Remove(t.Context(), h.layout(config.AccessRW)))
	same(t, "everything", snapshot(t, h.base), before)
}

func TestReseedWithASourceThatBecameALinkKeepsTheCopy(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	must(t, os.Remove(filepath.Join(h.agent, "SOUL.md")))
	must(t, os.Symlink("USER.md", filepath.Join(h.agent, "SOUL.md")))
	report := reseed(t, h, false)
	warned(t, report.Warnings, "SOUL.md", "symbolic link")
	same(t, "SOUL.md", read(t, filepath.Join(h.copy, "SOUL.md")), "content of SOUL.md")
}

func TestReseedMakesAMissingCopy(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	same(t, "seeded", len(reseed(t, h, false).Seeded), 7)
	must(t, os.RemoveAll(h.copy))
	same(t, "seeded again", len(reseed(t, h, false).Seeded), 7)
}

func TestRemoveLeavesNothingOfACopy(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	outside := filepath.Join(h.base, "outside")
	write(t, filepath.Join(outside, "precious"), "safe")
	h.prepare()
	write(t, filepath.Join(h.agent, "skills", "a", "SKILL.md"), "a")
	workspace.SyncSkills(t.Context(), h.layout(config.AccessNone), workspace.SkillOptions{})
	must(t, os.Symlink(outside, filepath.Join(h.copy, "out")))
	must(t, os.Link(filepath.Join(outside, "precious"), filepath.Join(h.copy, "hard")))
	must(t, workspace.Remove(t.Context(), h.layout(config.AccessNone)))
	same(t, "outside", read(t, filepath.Join(outside, "precious")), "safe")
	if _, err := os.Lstat(h.copy); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy: %v", err)
	}
	same(t, "records", len(names(t, filepath.Join(h.root, ".atoll", "manifests"))), 0)
	must(t, workspace.Remove(t.Context(), h.layout(config.AccessNone))) // once more is no error
}

// An agent can nest directories far deeper than we could hold open, or than a
// path can be long.
func TestRemoveOfAnEndlesslyDeepCopy(t *testing.T) {
	need.Time(t, "it makes thousands of directories")
	h := newHouse(t)
	h.prepare()
	limitFiles(t, 100)
	at, err := unix.Open(h.copy, unix.O_DIRECTORY, 0)
	must(t, err)
	for range 5_000 {
		must(t, unix.Mkdirat(at, "d", 0o755))
		next, err := unix.Openat(at, "d", unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = next
	}
	must(t, unix.Close(at))
	must(t, workspace.Remove(t.Context(), h.layout(config.AccessNone)))
	same(t, "trash", len(names(t, filepath.Join(h.root, ".atoll", "trash"))), 0)
}

// limitFiles lets the process open only so many files until the test ends.
func limitFiles(t *testing.T, n uint64) {
	t.Helper()
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: old.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) })
}

func TestRemoveOfDirectoriesWithoutRights(t *testing.T) {
	h := ownedHouse(t, 1000)
	asUser(t, 1000, func() {
		h.prepare()
		for _, mode := range []os.FileMode{0, 0o100, 0o400, 0o555} {
			inner := filepath.Join(h.copy, mode.String(), "inner")
			write(t, filepath.Join(inner, "file"), "")
			must(t, os.Chmod(inner, mode))
			must(t, os.Chmod(filepath.Dir(inner), mode))
		}
		must(t, workspace.Remove(t.Context(), h.layout(config.AccessNone)))
		same(t, "trash", len(names(t, filepath.Join(h.root, ".atoll", "trash"))), 0)
	})
}

func TestRemoveNeverCrossesAMount(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	for name, target := range map[string]string{"below": filepath.Join(h.copy, "a", "mnt"), "the copy itself": h.copy} {
		t.Run(name, func(t *testing.T) {
			must(t, os.MkdirAll(target, 0o755))
			disk := smallDisk(t, "64k")
			write(t, filepath.Join(disk, "precious"), "safe")
			must(t, unix.Mount(disk, target, "", unix.MS_BIND, ""))
			err := workspace.Remove(t.Context(), h.layout(config.AccessNone))
			if err == nil || !strings.Contains(err.Error(), "is a mount point") {
				t.Errorf("got %v", err)
			}
			same(t, "what is mounted", read(t, filepath.Join(disk, "precious")), "safe")
			unmountBelow(t, h.base)
			must(t, workspace.Sweep(t.Context(), h.root))
		})
	}
}

// unmountBelow unmounts what a test mounted, wherever it was moved to.
func unmountBelow(t *testing.T, dir string) {
	t.Helper()
	for line := range strings.Lines(read(t, "/proc/self/mountinfo")) {
		if target := strings.Fields(line)[4]; strings.HasPrefix(target, dir+"/") {
			must(t, unix.Unmount(target, 0))
		}
	}
}

func TestSweepFinishesWhatARemovalDidNot(t *testing.T) {
	h := newHouse(t)
	must(t, workspace.Sweep(t.Context(), h.root)) // nothing there
	h.prepare()
	write(t, filepath.Join(h.root, ".atoll", "trash", slug+"-X", "a", "b", "c"), "")
	write(t, filepath.Join(h.root, ".atoll", "trash", "y"), "")
	must(t, workspace.Sweep(t.Context(), h.root))
	same(t, "trash", len(names(t, filepath.Join(h.root, ".atoll", "trash"))), 0)
	if _, err := os.Stat(h.copy); err != nil {
		t.Error(err)
	}
}

func TestSweepRemovesHalfWrittenRecordsOnly(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	records := filepath.Join(h.root, ".atoll", "manifests")
	before := names(t, records)
	old, fresh := filepath.Join(records, hostpath.TempPrefix+"OLD"), filepath.Join(records, hostpath.TempPrefix+"NEW")
	for _, path := range []string{old, fresh} {
		write(t, path, "half")
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	must(t, os.Chtimes(old, yesterday, yesterday))
	for _, name := range before {
		must(t, os.Chtimes(filepath.Join(records, name), yesterday, yesterday))
	}
	must(t, workspace.Sweep(t.Context(), h.root))
	same(t, "records", len(names(t, records)), len(before)+1)
	same(t, "one that is being written", read(t, fresh), "half")
}
