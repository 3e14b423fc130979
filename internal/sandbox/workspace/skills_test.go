package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func syncSkills(t *testing.T, h house, opts workspace.SkillOptions) workspace.SkillReport {
	t.Helper()
	return workspace.SyncSkills(t.Context(), h.layout(config.AccessNone), opts)
}

// skill makes a skill of the agent workspace and returns its directory.
func (h house) skill(name string) string {
	dir := filepath.Join(h.agent, "skills", name)
	write(h.t, filepath.Join(dir, "SKILL.md"), "how to "+name)
	return dir
}

func TestSkillsAreMirrored(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	dir := h.skill("paint")
	write(t, filepath.Join(dir, "scripts", "mix.sh"), "#!/bin/sh")
	must(t, os.Chmod(filepath.Join(dir, "scripts", "mix.sh"), 0o4755))
	write(t, filepath.Join(dir, ".git", "config"), "x")
	write(t, filepath.Join(dir, "node_modules", "m", "index.js"), "x")
	write(t, filepath.Join(h.agent, "skills", "not-a-skill", "README.md"), "x")
	write(t, filepath.Join(h.agent, "skills", "README.md"), "x")
	must(t, os.MkdirAll(filepath.Join(dir, "empty"), 0o755))

	report := syncSkills(t, h, workspace.SkillOptions{})
	same(t, "report", report, workspace.SkillReport{Skills: []string{"paint"}, Written: 2})
	same(t, "skills/", mapKeys(snapshot(t, filepath.Join(h.copy, "skills"))), []string{
		".", "paint", "paint/SKILL.md", "paint/empty", "paint/scripts", "paint/scripts/mix.sh"})
	same(t, "SKILL.md", read(t, filepath.Join(h.copy, "skills", "paint", "SKILL.md")), "how to paint")
	info, err := os.Stat(filepath.Join(h.copy, "skills", "paint", "scripts", "mix.sh"))
	must(t, err)
	same(t, "mode", info.Mode(), os.FileMode(0o755))
}

func TestSkillsSecondSyncOpensNoFile(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	source := filepath.Join(h.skill("paint"), "SKILL.md")
	syncSkills(t, h, workspace.SkillOptions{})
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK)
	must(t, err)
	defer func() { must(t, unix.Close(watch)) }()
	for _, path := range []string{source, filepath.Join(h.copy, "skills", "paint", "SKILL.md")} {
		_, err := unix.InotifyAddWatch(watch, path, unix.IN_OPEN)
		must(t, err)
	}
	opened := func() int {
		n, err := unix.Read(watch, make([]byte, 4096))
		if errors.Is(err, unix.EAGAIN) {
			return 0
		}
		must(t, err)
		return n / unix.SizeofInotifyEvent
	}
	same(t, "written", syncSkills(t, h, workspace.SkillOptions{}).Written, 0)
	same(t, "files opened", opened(), 0)
	must(t, os.Chtimes(source, time.Now(), time.Now()))
	syncSkills(t, h, workspace.SkillOptions{})
	if opened() == 0 {
		t.Error("a touched source was not read, so this test sees nothing")
	}
}

func TestSkillsOnlyChangedFilesAreRewritten(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	dir := h.skill("paint")
	write(t, filepath.Join(dir, "colours.txt"), "red")
	syncSkills(t, h, workspace.SkillOptions{})
	inode := func(name string) uint64 {
		var st unix.Stat_t
		must(t, unix.Stat(filepath.Join(h.copy, "skills", "paint", name), &st))
		return st.Ino
	}
	before := inode("SKILL.md")
	write(t, filepath.Join(dir, "colours.txt"), "blue")
	must(t, os.Chtimes(filepath.Join(dir, "SKILL.md"), time.Now(), time.Now())) // touched, not changed
	same(t, "written", syncSkills(t, h, workspace.SkillOptions{}).Written, 1)
	same(t, "colours.txt", read(t, filepath.Join(h.copy, "skills", "paint", "colours.txt")), "blue")
	same(t, "inode of SKILL.md", inode("SKILL.md"), before)
}

func TestSkillsUndoWhatTheAgentDidThere(t *testing.T) {
	for name, tamper := range map[string]func(t *testing.T, skill string){
		"changed a file": func(t *testing.T, skill string) { write(t, filepath.Join(skill, "SKILL.md"), "HOW TO paint") },
		"changed a file and set its times back": func(t *testing.T, skill string) {
			path := filepath.Join(skill, "SKILL.md")
			info, err := os.Stat(path)
			must(t, err)
			write(t, path, "HOW TO paint")
			must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
		"changed a mode": func(t *testing.T, skill string) { must(t, os.Chmod(filepath.Join(skill, "SKILL.md"), 0o600)) },
		"removed a file": func(t *testing.T, skill string) { must(t, os.Remove(filepath.Join(skill, "SKILL.md"))) },
		"removed all":    func(t *testing.T, skill string) { must(t, os.RemoveAll(filepath.Dir(skill))) },
		"added a file":   func(t *testing.T, skill string) { write(t, filepath.Join(skill, "more", "x.md"), "x") },
		"added a skill":  func(t *testing.T, skill string) { write(t, filepath.Join(skill, "..", "own", "SKILL.md"), "x") },
		"file became a directory": func(t *testing.T, skill string) {
			must(t, os.Remove(filepath.Join(skill, "SKILL.md")))
			write(t, filepath.Join(skill, "SKILL.md", "deep", "x"), "x")
		},
		"directory became a file": func(t *testing.T, skill string) { must(t, os.RemoveAll(skill)); write(t, skill, "x") },
		"file became a pipe": func(t *testing.T, skill string) {
			must(t, os.Remove(filepath.Join(skill, "SKILL.md")))
			must(t, unix.Mkfifo(filepath.Join(skill, "SKILL.md"), 0o644))
		},
		"hard link to its own file": func(t *testing.T, skill string) {
			must(t, os.Link(filepath.Join(skill, "SKILL.md"), filepath.Join(skill, "..", "..", "handle")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.prepare()
			h.skill("paint")
			syncSkills(t, h, workspace.SkillOptions{})
			want := snapshot(t, filepath.Join(h.copy, "skills"))
			tamper(t, filepath.Join(h.copy, "skills", "paint"))
			report := syncSkills(t, h, workspace.SkillOptions{})
			same(t, "skills", report.Skills, []string{"paint"})
			same(t, "skills/", snapshot(t, filepath.Join(h.copy, "skills")), want)
		})
	}
}

// A planted link must never redirect a write or a removal.
func TestSkillsNeverFollowAPlantedLink(t *testing.T) {
	for _, planted := range []string{"skills", "skills/paint", "skills/paint/deep", "skills/paint/SKILL.md"} {
		t.Run(planted, func(t *testing.T) {
			h := newHouse(t)
			h.prepare()
			write(t, filepath.Join(h.skill("paint"), "deep", "x.md"), "x")
			outside := filepath.Join(h.base, "outside")
			write(t, filepath.Join(outside, "paint", "SKILL.md"), "precious")
			write(t, filepath.Join(outside, "SKILL.md"), "precious")
			write(t, filepath.Join(outside, "stale"), "precious")
			before := snapshot(t, outside)
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(h.copy, planted)), 0o755))
			target := outside
			if strings.HasSuffix(planted, ".md") {
				target = filepath.Join(outside, "SKILL.md")
			}
			must(t, os.Symlink(target, filepath.Join(h.copy, planted)))
			report := syncSkills(t, h, workspace.SkillOptions{})
			same(t, "skills", report.Skills, []string{"paint"})
			same(t, "outside", snapshot(t, outside), before)
			same(t, "SKILL.md", read(t, filepath.Join(h.copy, "skills", "paint", "SKILL.md")), "how to paint")
			info, err := os.Lstat(filepath.Join(h.copy, planted))
			must(t, err)
			if info.Mode()&os.ModeSymlink != 0 {
				t.Error("the link is still there")
			}
		})
	}
}

func TestSkillsRefuseLinksInSources(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	secret := filepath.Join(h.base, "secret")
	write(t, secret, "key")
	dir := h.skill("paint")
	write(t, filepath.Join(dir, "real.md"), "x")
	must(t, os.Symlink(secret, filepath.Join(dir, "out.md")))
	must(t, os.Symlink("real.md", filepath.Join(dir, "in.md")))
	must(t, os.Symlink(h.base, filepath.Join(dir, "dir")))
	must(t, os.Link(secret, filepath.Join(dir, "hard.md")))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644))
	must(t, os.Symlink(dir, filepath.Join(h.agent, "skills", "alias")))
	must(t, os.Mkdir(filepath.Join(h.agent, "skills", "hollow"), 0o755))
	must(t, os.Symlink(secret, filepath.Join(h.agent, "skills", "hollow", "SKILL.md")))

	report := syncSkills(t, h, workspace.SkillOptions{})
	same(t, "skills", report.Skills, []string{"paint"})
	same(t, "files", names(t, filepath.Join(h.copy, "skills", "paint")), []string{"SKILL.md", "real.md"})
	for _, name := range []string{"out.md", "in.md", "dir", "pipe"} {
		warned(t, report.Warnings, "skills/paint/"+name, "links are refused wherever they lead")
	}
	warned(t, report.Warnings, "skills/paint/hard.md", "more than one hard link")
	warned(t, report.Warnings, "skills/alias", "is a symbolic link")
	warned(t, report.Warnings, "skills/hollow/SKILL.md", "links are refused")
}

func TestSkillsDirectoryThatIsALinkIsRefused(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	write(t, filepath.Join(h.base, "elsewhere", "paint", "SKILL.md"), "x")
	must(t, os.Symlink(filepath.Join(h.base, "elsewhere"), filepath.Join(h.agent, "skills")))
	report := syncSkills(t, h, workspace.SkillOptions{})
	warned(t, report.Warnings, "skills", "in the agent workspace it is or passes through a symbolic link")
	same(t, "skills", report.Skills, []string(nil))
}

func TestSkillsFilters(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	write(t, filepath.Join(h.skill("paint"), "secret.md"), "x")
	h.skill("sing")
	h.skill("hidden")
	readable := func(path string) bool {
		return path != "skills/paint/secret.md" && path != "skills/hidden/SKILL.md"
	}
	all := syncSkills(t, h, workspace.SkillOptions{Readable: readable})
	same(t, "all", all.Skills, []string{"paint", "sing"})
	same(t, "readable", names(t, filepath.Join(h.copy, "skills", "paint")), []string{"SKILL.md"})
	one := syncSkills(t, h, workspace.SkillOptions{Allowed: []string{"sing", "dance"}})
	same(t, "allowed", one.Skills, []string{"sing"})
	same(t, "the others are removed", names(t, filepath.Join(h.copy, "skills")), []string{"sing"})
	none := syncSkills(t, h, workspace.SkillOptions{Allowed: []string{}})
	same(t, "none", len(none.Skills)+len(names(t, filepath.Join(h.copy, "skills"))), 0)
}

func TestSkillsFirstRootWins(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	h.skill("paint")
	managed, bundled := filepath.Join(h.base, "managed"), filepath.Join(h.base, "bundled")
	for _, root := range []string{managed, bundled} {
		write(t, filepath.Join(root, "paint", "SKILL.md"), root)
		write(t, filepath.Join(root, "sing", "SKILL.md"), root)
	}
	must(t, os.Symlink(bundled, filepath.Join(h.base, "way"))) // a root may be a link: the operator chose it
	roots := []string{filepath.Join(h.base, "missing"), managed, filepath.Join(h.base, "way")}
	report := syncSkills(t, h, workspace.SkillOptions{Roots: roots})
	same(t, "skills", report.Skills, []string{"paint", "sing"})
	same(t, "paint", read(t, filepath.Join(h.copy, "skills", "paint", "SKILL.md")), "how to paint")
	same(t, "sing", read(t, filepath.Join(h.copy, "skills", "sing", "SKILL.md")), managed)
	same(t, "warnings", len(report.Warnings), 3)
	warned(t, report.Warnings, "skills/sing", "another skill has the same name and comes first")
}

func TestSkillsOddNamesAreLeftOut(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	for _, name := range []string{" ", "node_modules", ".git", "bad\x1bname", "fine name"} {
		h.skill(name)
	}
	report := syncSkills(t, h, workspace.SkillOptions{})
	same(t, "skills", report.Skills, []string{"fine name"})
	warned(t, report.Warnings, `"skills/bad\x1bname"`, "cannot be shown")
}

func TestSkillsLimits(t *testing.T) {
	t.Run("file size", func(t *testing.T) {
		h := newHouse(t)
		h.prepare()
		dir := h.skill("paint")
		write(t, filepath.Join(dir, "fits"), "")
		must(t, os.Truncate(filepath.Join(dir, "fits"), workspace.MaxSkillFileBytes))
		write(t, filepath.Join(dir, "large"), "")
		must(t, os.Truncate(filepath.Join(dir, "large"), workspace.MaxSkillFileBytes+1))
		report := syncSkills(t, h, workspace.SkillOptions{})
		same(t, "files", names(t, filepath.Join(h.copy, "skills", "paint")), []string{"SKILL.md", "fits"})
		warned(t, report.Warnings, "skills/paint/large", "larger than 8 MiB")
	})
	t.Run("total size", func(t *testing.T) {
		h := newHouse(t)
		h.prepare()
		h.skill("a")
		big := h.skill("big")
		for i := range workspace.MaxSkillTotalBytes/workspace.MaxSkillFileBytes + 1 {
			path := filepath.Join(big, fmt.Sprint(i))
			write(t, path, "")
			must(t, os.Truncate(path, workspace.MaxSkillFileBytes))
		}
		h.skill("z")
		report := syncSkills(t, h, workspace.SkillOptions{})
		same(t, "skills", report.Skills, []string{"a", "z"})
		warned(t, report.Warnings, "skills/big", "more than 4096 files or 64 MiB")
	})
	t.Run("count", func(t *testing.T) {
		h := newHouse(t)
		h.prepare()
		many := h.skill("many")
		for i := range workspace.MaxSkillFiles {
			write(t, filepath.Join(many, fmt.Sprint(i%64), fmt.Sprint(i)), "")
		}
		h.skill("z")
		report := syncSkills(t, h, workspace.SkillOptions{})
		same(t, "skills", report.Skills, []string{"z"})
		warned(t, report.Warnings, "skills/many", "more than 4096 files")
	})
	t.Run("depth", func(t *testing.T) {
		h := newHouse(t)
		h.prepare()
		deepest := strings.Repeat("d/", workspace.MaxSkillDepth-1)
		write(t, filepath.Join(h.skill("deep"), deepest, "d", "x"), "")
		report := syncSkills(t, h, workspace.SkillOptions{})
		same(t, "deepest", len(names(t, filepath.Join(h.copy, "skills", "deep", deepest))), 0)
		warned(t, report.Warnings, "skills/deep", "deeper than 16 directories")
	})
	t.Run("skills", func(t *testing.T) {
		h := newHouse(t)
		h.prepare()
		for i := range workspace.MaxSkills + 1 {
			h.skill(fmt.Sprintf("s%03d", i))
		}
		report := syncSkills(t, h, workspace.SkillOptions{})
		same(t, "skills", len(report.Skills), workspace.MaxSkills)
		warned(t, report.Warnings, "skills/s256", "more than 256 skills")
	})
	t.Run("warnings", func(t *testing.T) {
		h := newHouse(t)
		h.prepare()
		dir := h.skill("paint")
		for i := range workspace.MaxWarnings + 50 {
			must(t, os.Symlink("x", filepath.Join(dir, fmt.Sprint(i))))
		}
		report := syncSkills(t, h, workspace.SkillOptions{})
		same(t, "warnings", len(report.Warnings), workspace.MaxWarnings)
		same(t, "the last", report.Warnings[workspace.MaxWarnings-1].Message, "and more; the rest is not listed")
	})
}

func TestSkillsFailureIsAWarning(t *testing.T) {
	disk := smallDisk(t, "128k")
	h := newHouse(t)
	h.root = filepath.Join(disk, "sandboxes")
	h.copy = filepath.Join(h.root, slug)
	h.prepare()
	for i := range 20 {
		write(t, filepath.Join(h.skill("paint"), fmt.Sprint(i)), strings.Repeat("x", 16<<10))
	}
	report := syncSkills(t, h, workspace.SkillOptions{})
	warned(t, report.Warnings, "skills", "no space left on device")
	same(t, "skills", report.Skills, []string(nil))
	for _, name := range names(t, filepath.Join(h.copy, "skills", "paint")) {
		same(t, name, read(t, filepath.Join(h.copy, "skills", "paint", name)), read(t, filepath.Join(h.agent, "skills", "paint", name)))
	}
	must(t, unix.Mount("", disk, "", unix.MS_REMOUNT, "size=2m"))
	report = syncSkills(t, h, workspace.SkillOptions{})
	same(t, "once there is space", report.Skills, []string{"paint"})
}

func TestSkillsWithoutACopyWarn(t *testing.T) {
	h := newHouse(t)
	h.skill("paint")
	report := syncSkills(t, h, workspace.SkillOptions{})
	warned(t, report.Warnings, "skills", "no such file or directory")
}

func TestSkillsEndWithTheContext(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	h.skill("paint")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report := workspace.SyncSkills(ctx, h.layout(config.AccessNone), workspace.SkillOptions{})
	warned(t, report.Warnings, "skills", "context canceled")
}

func TestSkillsUnderRWAreLeftAlone(t *testing.T) {
	h := newHouse(t)
	h.skill("paint")
	before := snapshot(t, h.base)
	report := workspace.SyncSkills(t.Context(), h.layout(config.AccessRW), workspace.SkillOptions{})
	same(t, "report", report, workspace.SkillReport{})
	same(t, "everything", snapshot(t, h.base), before)
}

func TestSkillsWithADamagedRecord(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	h.skill("paint")
	syncSkills(t, h, workspace.SkillOptions{})
	for _, damaged := range []string{"", "{", `{"version":9,"files":{}}`} {
		write(t, filepath.Join(h.root, ".atoll", "manifests", slug+".skills.json"), damaged)
		report := syncSkills(t, h, workspace.SkillOptions{})
		same(t, "report", report, workspace.SkillReport{Skills: []string{"paint"}})
	}
}

func TestSkillsAreChangesOnlyWhereTheAgentChangedThem(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	h.skill("paint")
	h.skill("sing")
	syncSkills(t, h, workspace.SkillOptions{})
	same(t, "fresh", len(changesOf(t, h).Changes), 0)
	write(t, filepath.Join(h.copy, "skills", "sing", "SKILL.md"), "louder")
	write(t, filepath.Join(h.copy, "skills", "own", "SKILL.md"), "mine")
	same(t, "changes", changesOf(t, h).Changes, []workspace.Change{
		{Path: "skills/own/SKILL.md", Kind: workspace.Added, Type: "file", Size: 4},
		{Path: "skills/sing/SKILL.md", Kind: workspace.Modified, Type: "file", Size: 6},
	})
}

func TestSkillsBelongToTheSandboxUser(t *testing.T) {
	h := ownedHouse(t, 1234)
	h.prepare()
	write(t, filepath.Join(h.skill("paint"), "deep", "x"), "")
	syncSkills(t, h, workspace.SkillOptions{})
	for _, rel := range []string{"skills", "skills/paint", "skills/paint/deep/x"} {
		same(t, rel, ownerOf(t, filepath.Join(h.copy, rel)), uint32(1234))
	}
}

func mapKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	return sorted(keys)
}
