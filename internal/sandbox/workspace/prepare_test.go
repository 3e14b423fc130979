package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func TestPrepareIsIdempotent(t *testing.T) {
	h := newHouse(t)
	write(t, filepath.Join(h.agent, "SOUL.md"), "kind")
	first := h.prepare()
	same(t, "first", first, workspace.Report{CopyCreated: true, Seeded: []string{"SOUL.md"}})
	before := snapshot(t, h.root)
	second := h.prepare()
	same(t, "second", second, workspace.Report{Kept: []string{"SOUL.md"}})
	same(t, "what is on disk", snapshot(t, h.root), before)
	info, err := os.Stat(h.copy)
	must(t, err)
	same(t, "mode of the copy", info.Mode().Perm(), os.FileMode(0o700))
}

func TestPrepareMakesTheDefaultWorkspace(t *testing.T) {
	for _, access := range []config.Access{config.AccessNone, config.AccessRO, config.AccessRW} {
		t.Run(string(access), func(t *testing.T) {
			h := newHouse(t)
			p := h.params(access)
			p.AgentDir, p.AgentDirIsDefault = filepath.Join(h.base, "state", "workspace"), true
			l, err := workspace.NewLayout(p)
			must(t, err)
			report, err := workspace.Prepare(t.Context(), l, workspace.Options{})
			must(t, err)
			info, err := os.Stat(p.AgentDir)
			must(t, err)
			if !report.AgentDirCreated || info.Mode().Perm() != 0o700 {
				t.Errorf("created %v, mode %v", report.AgentDirCreated, info.Mode())
			}
			again, err := workspace.Prepare(t.Context(), l, workspace.Options{})
			if err != nil || again.AgentDirCreated {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
}

func TestPrepareUnderRWMakesNoCopy(t *testing.T) {
	h := newHouse(t)
	write(t, filepath.Join(h.agent, "SOUL.md"), "kind")
	before := snapshot(t, h.agent)
	report, err := workspace.Prepare(t.Context(), h.layout(config.AccessRW), workspace.Options{})
	must(t, err)
	same(t, "report", report, workspace.Report{})
	same(t, "agent workspace", snapshot(t, h.agent), before)
	if _, err := os.Stat(h.root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a root for copies was made: %v", err)
	}
}

func TestPrepareRefusesABadAgentWorkspace(t *testing.T) {
	for name, tc := range map[string]struct {
		make       func(t *testing.T, h house)
		access     config.Access
		text, hint string
	}{
		"missing, rw": {func(t *testing.T, h house) { must(t, os.Remove(h.agent)) },
			config.AccessRW, "no such file or directory", "`, or correct the agent's workspace"},
		"missing, ro": {func(t *testing.T, h house) { must(t, os.Remove(h.agent)) },
			config.AccessRO, "no such file or directory", "Create the directory with `mkdir -p '"},
		"a link, rw":   {linkAgent, config.AccessRW, "symbolic link", "the directory that the link leads to"},
		"a link, ro":   {linkAgent, config.AccessRO, "symbolic link", "the directory that the link leads to"},
		"a link, none": {linkAgent, config.AccessNone, "symbolic link", "the directory that the link leads to"},
		"a file": {func(t *testing.T, h house) { must(t, os.Remove(h.agent)); write(t, h.agent, "") },
			config.AccessRW, "is not a directory", "Set workspace to a directory"},
		"not writable for its owner": {func(t *testing.T, h house) {
			must(t, os.Chown(h.agent, 1000, 1000))
			must(t, os.Chmod(h.agent, 0o555))
		}, config.AccessRW, "not writable by uid 1000", `set docker.user to its owner "1000:1000"`},
		"on a read-only disk": {func(t *testing.T, h house) {
			must(t, unix.Mount("tmpfs", h.agent, "tmpfs", unix.MS_RDONLY, ""))
			t.Cleanup(func() { must(t, unix.Unmount(h.agent, 0)) })
		}, config.AccessRW, "read-only file system", "remount it"},
		"leads into the root by a link": {func(t *testing.T, h house) {
			must(t, os.MkdirAll(filepath.Join(h.root, "inner"), 0o755))
			must(t, os.Rename(h.agent, h.agent+"-old"))
			must(t, os.Symlink(h.root, filepath.Join(h.base, "way")))
			must(t, os.Symlink("sandboxes/inner", h.agent))
		}, config.AccessNone, "lies in", "outside the other"},
	} {
		t.Run(name, func(t *testing.T) {
			needRoot(t)
			h := newHouse(t)
			tc.make(t, h)
			_, err := workspace.Prepare(t.Context(), h.layout(tc.access), workspace.Options{})
			fails(t, err, "agent workspace "+h.base, tc.hint)
			fails(t, err, tc.text, tc.hint)
			if _, err := os.Lstat(h.copy); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a copy was made: %v", err)
			}
		})
	}
}

func linkAgent(t *testing.T, h house) {
	must(t, os.Rename(h.agent, h.agent+"-real"))
	must(t, os.Symlink(h.agent+"-real", h.agent))
}

func TestPrepareRefusesAWorkspaceThatTheConfiguredUserCannotWrite(t *testing.T) {
	needRoot(t)
	h := newHouse(t) // belongs to root
	user := hostpath.Owner{UID: 1000, GID: 1000}
	_, err := workspace.Prepare(t.Context(), h.layout(config.AccessRW), workspace.Options{User: &user})
	fails(t, err, "not writable by uid 1000", `"0:0"`)
	must(t, os.Chmod(h.agent, 0o777))
	_, err = workspace.Prepare(t.Context(), h.layout(config.AccessRW), workspace.Options{User: &user})
	must(t, err)
}

func TestPrepareWithoutAnAgentWorkspaceWarnsUnderNone(t *testing.T) {
	h := newHouse(t)
	must(t, os.Remove(h.agent))
	report := h.prepare()
	warned(t, report.Warnings, h.agent, "does not exist, so nothing is seeded")
	if !report.CopyCreated {
		t.Error("no copy was made")
	}
}

func TestPrepareRefusesABadCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		make func(t *testing.T, h house)
		text string
	}{
		"a link":        {func(t *testing.T, h house) { must(t, os.Symlink(h.agent, h.copy)) }, "is or passes through a symbolic link"},
		"dangling link": {func(t *testing.T, h house) { must(t, os.Symlink("nowhere", h.copy)) }, "is or passes through a symbolic link"},
		"a file":        {func(t *testing.T, h house) { write(t, h.copy, "x") }, "is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			write(t, filepath.Join(h.agent, "SOUL.md"), "kind")
			must(t, os.Mkdir(h.root, 0o700))
			tc.make(t, h)
			before := snapshot(t, h.agent)
			_, err := workspace.Prepare(t.Context(), h.layout(config.AccessNone), workspace.Options{})
			fails(t, err, "sandbox workspace "+h.copy+": "+tc.text, "Move it away")
			same(t, "agent workspace", snapshot(t, h.agent), before)
		})
	}
}

func TestPrepareRefusesABadRoot(t *testing.T) {
	for name, tc := range map[string]struct {
		make       func(t *testing.T, h house)
		text, hint string
	}{
		"a file":              {func(t *testing.T, h house) { write(t, h.root, "x") }, "not a directory", "Set sandbox.workspaceRoot to a directory"},
		"everybody may write": {func(t *testing.T, h house) { must(t, os.Mkdir(h.root, 0)); must(t, os.Chmod(h.root, 0o777)) }, "everybody may write to it", "chmod o-w"},
		"our directory is a link": {func(t *testing.T, h house) {
			must(t, os.Mkdir(h.root, 0o700))
			must(t, os.Symlink(h.agent, filepath.Join(h.root, ".atoll")))
		}, "symbolic link", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			tc.make(t, h)
			_, err := workspace.Prepare(t.Context(), h.layout(config.AccessNone), workspace.Options{})
			if err == nil || !strings.Contains(err.Error(), "sandbox.workspaceRoot "+h.root+": ") {
				t.Fatalf("got %v", err)
			}
			if tc.hint != "" {
				fails(t, err, tc.text, tc.hint)
			}
			same(t, "agent workspace", names(t, h.agent), []string(nil))
		})
	}
}

func TestPrepareAsAnotherUserSaysWhatIsNotAllowed(t *testing.T) {
	h := ownedHouse(t, 1000)
	must(t, os.Mkdir(h.root, 0o755)) // belongs to root
	l := h.layout(config.AccessNone)
	asUser(t, 1000, func() {
		_, err := workspace.Prepare(t.Context(), l, workspace.Options{})
		fails(t, err, "permission denied", "Let the user that runs Atoll write to "+h.root)
	})
	must(t, os.Chown(h.root, 1000, 1000))
	asUser(t, 1000, func() {
		_, err := workspace.Prepare(t.Context(), l, workspace.Options{})
		must(t, err)
		must(t, os.Chmod(h.copy, 0o555)) // as an agent with the same uid could
		_, err = workspace.Prepare(t.Context(), l, workspace.Options{})
		fails(t, err, "permission denied", "chmod u+rwx "+h.copy)
	})
}

func TestPrepareGivesTheCopyToTheSandboxUser(t *testing.T) {
	needRoot(t)
	for name, tc := range map[string]struct {
		user *hostpath.Owner
		want uint32
	}{
		"configured":         {&hostpath.Owner{UID: 1234, GID: 1234}, 1234},
		"as agent workspace": {nil, 4321},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			write(t, filepath.Join(h.agent, "SOUL.md"), "kind")
			must(t, os.Chown(h.agent, 4321, 4321))
			_, err := workspace.Prepare(t.Context(), h.layout(config.AccessNone), workspace.Options{User: tc.user})
			must(t, err)
			for _, path := range []string{h.copy, filepath.Join(h.copy, "SOUL.md")} {
				same(t, "owner of "+path, ownerOf(t, path), tc.want)
			}
			same(t, "owner of the manifest", ownerOf(t, h.manifestPath()), uint32(0))
		})
	}
}

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t).Uid
}

func TestPrepareMentionsACopyOfAnotherUser(t *testing.T) {
	h := ownedHouse(t, 1000)
	h.prepare()
	other := hostpath.Owner{UID: 1001, GID: 1001}
	report, err := workspace.Prepare(t.Context(), h.layout(config.AccessNone), workspace.Options{User: &other})
	must(t, err)
	warned(t, report.Warnings, h.copy, "belonged to uid 1000 and now to uid 1001")
	same(t, "owner", ownerOf(t, h.copy), uint32(1001))
}

func TestPrepareThatCannotGiveTheCopyAwayLetsTheUserIn(t *testing.T) {
	h := ownedHouse(t, 1000)
	other := hostpath.Owner{UID: 1001, GID: 1001}
	asUser(t, 1000, func() {
		report, err := workspace.Prepare(t.Context(), h.layout(config.AccessNone), workspace.Options{User: &other})
		must(t, err)
		warned(t, report.Warnings, h.copy, "belongs to uid 1000, but the sandbox runs as uid 1001")
	})
	info, err := os.Stat(h.copy)
	must(t, err)
	same(t, "mode", info.Mode().Perm(), os.FileMode(0o755))
}

func TestPrepareTwentyTimesAtOnce(t *testing.T) {
	h := newHouse(t)
	seedAll(t, h)
	l := h.layout(config.AccessNone)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := workspace.Prepare(t.Context(), l, workspace.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	drift, err := workspace.DriftOf(l)
	must(t, err)
	if !drift.None() || strings.Count(read(t, h.manifestPath()), "sha256") != 7 {
		t.Errorf("drift %+v with manifest %s", drift, read(t, h.manifestPath()))
	}
	same(t, "the copy", names(t, h.copy), seedNames)
}

func TestPrepareStopsWaitingWithItsContext(t *testing.T) {
	h := newHouse(t)
	l := h.layout(config.AccessNone)
	h.prepare()
	release := holdCopy(t, h)
	defer release()
	ctx, cancel := timeout(t, 30)
	defer cancel()
	if _, err := workspace.Prepare(ctx, l, workspace.Options{}); err == nil || !strings.Contains(err.Error(), "deadline") {
		t.Errorf("got %v, want the deadline", err)
	}
}
