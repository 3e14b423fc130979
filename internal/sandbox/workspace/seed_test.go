package workspace_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

var seedNames = []string{"AGENTS.md", "BOOTSTRAP.md", "HEARTBEAT.md", "IDENTITY.md", "SOUL.md", "TOOLS.md", "USER.md"}

func seedAll(t *testing.T, h house) {
	t.Helper()
	for _, name := range seedNames {
		write(t, filepath.Join(h.agent, name), "content of "+name)
	}
}

func timeout(t *testing.T, ms int) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
}

// holdCopy holds the copy as another process would.
func holdCopy(t *testing.T, h house) func() {
	t.Helper()
	book, err := filelock.Open(filepath.Join(h.root, ".atoll", "locks"))
	must(t, err)
	held, err := book.Hold(t.Context(), slug)
	must(t, err)
	return held.Release
}

func TestSeedCopiesTheSevenAndNothingElse(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	for _, other := range []string{"MEMORY.md", "notes.md", "memory/2026.md", ".env"} {
		write(t, filepath.Join(h.agent, other), "private")
	}
	h.prepare()
	same(t, "the copy", names(t, h.copy), seedNames)
	for _, name := range seedNames {
		same(t, name, read(t, filepath.Join(h.copy, name)), "content of "+name)
	}
}

func TestSeedKeepsExistingCopies(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	write(t, filepath.Join(h.copy, "SOUL.md"), "what the agent became")
	write(t, filepath.Join(h.agent, "USER.md"), "the user moved")
	report := h.prepare()
	same(t, "seeded", report.Seeded, []string(nil))
	same(t, "SOUL.md", read(t, filepath.Join(h.copy, "SOUL.md")), "what the agent became")
	same(t, "USER.md", read(t, filepath.Join(h.copy, "USER.md")), "content of USER.md")
}

// An agent removes BOOTSTRAP.md when it is done with it; it must not come back.
func TestSeedDoesNotBringBackWhatTheAgentRemoved(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	h.prepare()
	must(t, os.Remove(filepath.Join(h.copy, "BOOTSTRAP.md")))
	report := h.prepare()
	same(t, "deleted", report.Deleted, []string{"BOOTSTRAP.md"})
	if _, err := os.Lstat(filepath.Join(h.copy, "BOOTSTRAP.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is back: %v", err)
	}
}

func TestSeedFillsACopyThatWasRemovedByHand(t *testing.T) {
	for name, remove := range map[string]func(h house) error{
		"the directory":  func(h house) error { return os.RemoveAll(h.copy) },
		"what was in it": func(h house) error { return exec.Command("sh", "-c", "rm -rf '"+h.copy+"'/*").Run() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			seedAll(t, h)
			h.prepare()
			must(t, remove(h))
			same(t, "seeded", len(h.prepare().Seeded), 7)
		})
	}
}

func TestSeedLaterSources(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	write(t, filepath.Join(h.agent, "SOUL.md"), "late")
	same(t, "seeded", h.prepare().Seeded, []string{"SOUL.md"})
}

func TestSeedRefusesSourcesThatAreNotPlainFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(t *testing.T, path, secret string)
		want string
	}{
		"link out":  {func(t *testing.T, path, secret string) { must(t, os.Symlink(secret, path)) }, "symbolic link"},
		"hard link": {func(t *testing.T, path, secret string) { must(t, os.Link(secret, path)) }, "more than one hard link"},
		"pipe":      {func(t *testing.T, path, _ string) { must(t, unix.Mkfifo(path, 0o644)) }, "named pipe"},
		"directory": {func(t *testing.T, path, _ string) { must(t, os.Mkdir(path, 0o755)) }, "is a directory"},
		"one byte too large": {func(t *testing.T, path, _ string) {
			write(t, path, strings.Repeat("x", workspace.MaxSeedBytes+1))
		}, "larger than allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			secret := filepath.Join(h.base, "secret")
			write(t, secret, "key")
			write(t, filepath.Join(h.agent, "USER.md"), "plain")
			tc.make(t, filepath.Join(h.agent, "SOUL.md"), secret)
			report := h.prepare()
			warned(t, report.Warnings, "SOUL.md", "not seeded: in the agent workspace it")
			warned(t, report.Warnings, "SOUL.md", tc.want)
			same(t, "hint", report.Warnings[0].Hint, "Make it a regular file of at most 2 MiB with one name.")
			same(t, "the copy", names(t, h.copy), []string{"USER.md"})
		})
	}
}

func TestSeedAtTheLimit(t *testing.T) {
	h := newHouse(t)
	write(t, filepath.Join(h.agent, "SOUL.md"), strings.Repeat("x", workspace.MaxSeedBytes))
	same(t, "seeded", h.prepare().Seeded, []string{"SOUL.md"})
}

// What has the name in the copy is never written through, whatever it is.
func TestSeedNeverWritesThroughALinkInTheCopy(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	outside := filepath.Join(h.base, "outside")
	write(t, outside, "safe")
	must(t, os.MkdirAll(h.copy, 0o755))
	must(t, os.Symlink(outside, filepath.Join(h.copy, "SOUL.md")))
	must(t, os.Symlink(filepath.Join(h.base, "new"), filepath.Join(h.copy, "USER.md")))
	report := h.prepare()
	same(t, "kept", report.Kept, []string{"SOUL.md", "USER.md"})
	same(t, "outside", read(t, outside), "safe")
	if _, err := os.Lstat(filepath.Join(h.base, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("written through the dangling link: %v", err)
	}
}

func TestSeedAdoptsCopiesOfAnotherProgram(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	write(t, filepath.Join(h.copy, "SOUL.md"), "content of SOUL.md")
	write(t, filepath.Join(h.copy, "USER.md"), "of old")
	h.prepare()
	drift, err := workspace.DriftOf(h.layout(config.AccessNone))
	must(t, err)
	same(t, "drift", drift, workspace.Drift{Modified: []string{"USER.md"}})
}

func TestDiskFullWhileSeeding(t *testing.T) {
	disk := smallDisk(t, "64k")
	h := newHouse(t)
	h.root = filepath.Join(disk, "sandboxes")
	h.copy = filepath.Join(h.root, slug)
	for _, name := range seedNames {
		write(t, filepath.Join(h.agent, name), strings.Repeat(name+"\n", 1500)) // about 15 KiB each
	}
	l := h.layout(config.AccessNone)
	_, err := workspace.Prepare(t.Context(), l, workspace.Options{})
	fails(t, err, "sandbox workspace "+h.copy+": seed ", "Free space on the disk of "+h.root)
	fails(t, err, "no space left on device", "no half-written file was left")
	seeded := names(t, h.copy)
	if len(seeded) == 0 || len(seeded) == 7 {
		t.Fatalf("the test must fail in the middle, not after %d files", len(seeded))
	}
	for _, name := range seeded {
		same(t, name, read(t, filepath.Join(h.copy, name)), read(t, filepath.Join(h.agent, name)))
	}

	must(t, unix.Mount("", disk, "", unix.MS_REMOUNT, "size=1m"))
	report, err := workspace.Prepare(t.Context(), l, workspace.Options{})
	must(t, err)
	same(t, "seeded once there is space", len(report.Seeded), 7-len(seeded))
	drift, err := workspace.DriftOf(l)
	if err != nil || !drift.None() {
		t.Errorf("drift %+v, %v", drift, err)
	}
}

// seedForEver is what the process does that TestKillWhileSeeding kills.
func seedForEver(t *testing.T, base string, discard bool) {
	h := house{t: t, base: base, agent: filepath.Join(base, "agent"), root: filepath.Join(base, "sandboxes")}
	for l := h.layout(config.AccessNone); ; {
		if !discard { // so that there is something to move aside
			write(t, filepath.Join(l.SandboxDir, "SOUL.md"), "grown")
			write(t, filepath.Join(l.SandboxDir, "USER.md"), "grown")
		}
		_, err := workspace.Reseed(t.Context(), l, workspace.Options{}, discard)
		must(t, err)
	}
}

// TestKillWhileSeeding kills a process that re-seeds without end, at many
// moments. Whatever is left must be whole, and the next start clean.
func TestKillWhileSeeding(t *testing.T) {
	if base := os.Getenv("WORKSPACE_TEST_SEED"); base != "" {
		seedForEver(t, base, os.Getenv("WORKSPACE_TEST_DISCARD") != "")
	}
	for name, env := range map[string]string{"moving aside": "", "discarding": "1"} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			for _, name := range seedNames {
				write(t, filepath.Join(h.agent, name), strings.Repeat(name+"\n", 20_000))
			}
			for range 15 {
				child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillWhileSeeding$")
				child.Env = append(os.Environ(), "WORKSPACE_TEST_SEED="+h.base, "WORKSPACE_TEST_DISCARD="+env)
				must(t, child.Start())
				time.Sleep(10*time.Millisecond + rand.N(60*time.Millisecond))
				must(t, child.Process.Kill())
				_ = child.Wait()
				if env != "" {
					checkWholeSeeds(t, h)
				}
				checkCleanStart(t, h)
			}
		})
	}
}

// checkCleanStart does what the next start and a recreate do.
func checkCleanStart(t *testing.T, h house) {
	t.Helper()
	h.prepare()
	must(t, workspace.Sweep(t.Context(), h.root))
	for _, name := range seedNames {
		if _, err := os.Lstat(filepath.Join(h.copy, name)); err != nil {
			t.Fatalf("after Prepare: %v", err)
		}
	}
	reseed(t, h, false)
	same(t, "the copy", names(t, h.copy), seedNames)
	checkWholeSeeds(t, h)
	drift, err := workspace.DriftOf(h.layout(config.AccessNone))
	if err != nil || !drift.None() {
		t.Fatalf("drift %+v, %v", drift, err)
	}
	if trash, err := os.ReadDir(filepath.Join(h.root, ".atoll", "trash")); err == nil && len(trash) > 0 {
		t.Errorf("left in the trash: %v", trash)
	}
}

func checkWholeSeeds(t *testing.T, h house) {
	t.Helper()
	for _, name := range seedNames {
		data, err := os.ReadFile(filepath.Join(h.copy, name))
		if err == nil && string(data) != read(t, filepath.Join(h.agent, name)) {
			t.Fatalf("%s is half a file: %d bytes", name, len(data))
		}
	}
}
