package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

func sorted(s []string) []string { slices.Sort(s); return s }

// inbox makes a media directory with files and returns it.
func (h house) inbox(files ...string) string {
	dir := filepath.Join(h.base, "inbox")
	must(h.t, os.MkdirAll(dir, 0o755))
	for _, name := range files {
		write(h.t, filepath.Join(dir, name), "content of "+name)
	}
	return dir
}

func stage(t *testing.T, l workspace.Layout, root string, sources ...string) ([]workspace.Staged, []workspace.Warning) {
	t.Helper()
	media := workspace.Media{Roots: []string{root}}
	for _, s := range sources {
		media.Sources = append(media.Sources, workspace.Source{Path: s})
	}
	staged, warnings, err := workspace.StageMedia(t.Context(), l, media)
	must(t, err)
	return staged, warnings
}

func TestMediaIsStagedWhereTheSandboxSeesIt(t *testing.T) {
	for _, access := range []config.Access{config.AccessNone, config.AccessRO, config.AccessRW} {
		t.Run(string(access), func(t *testing.T) {
			h := ownedHouse(t, 1234)
			h.prepare()
			l := h.layout(access)
			inbox := h.inbox("photo.png")
			staged, warnings := stage(t, l, inbox, filepath.Join(inbox, "photo.png"))
			same(t, "warnings", len(warnings), 0)
			if !regexp.MustCompile(`^media/inbound/turn-[a-z2-7]{26}/input-photo\.png$`).MatchString(staged[0].Path) {
				t.Errorf("path %q", staged[0].Path)
			}
			path := filepath.Join(l.WorkspaceDir, staged[0].Path)
			same(t, "content", read(t, path), "content of photo.png")
			same(t, "size", staged[0].Size, int64(20))
			for p := path; p != l.WorkspaceDir; p = filepath.Dir(p) {
				same(t, "owner of "+p, ownerOf(t, p), uint32(1234))
			}
		})
	}
}

func TestMediaOfEachTurnHasAFreshDirectory(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	inbox := h.inbox("a.png")
	l := h.layout(config.AccessNone)
	first, _ := stage(t, l, inbox, filepath.Join(inbox, "a.png"))
	second, _ := stage(t, l, inbox, filepath.Join(inbox, "a.png"))
	if filepath.Dir(first[0].Path) == filepath.Dir(second[0].Path) {
		t.Errorf("both in %s", first[0].Path)
	}
}

func TestMediaNamesOfOneTurnDiffer(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	inbox := h.inbox("a/x.png", "b/x.png", "c/X.PNG", "noext", "d/noext")
	var got []string
	staged, _ := stage(t, h.layout(config.AccessNone), inbox, filepath.Join(inbox, "a/x.png"), filepath.Join(inbox, "b/x.png"),
		filepath.Join(inbox, "c/X.PNG"), filepath.Join(inbox, "noext"), filepath.Join(inbox, "d/noext"))
	for _, s := range staged {
		got = append(got, filepath.Base(s.Path))
	}
	same(t, "names", got, []string{"input-x.png", "input-x-1.png", "input-X-2.PNG", "input-noext", "input-noext-1"})
}

func TestMediaNameOfTheSender(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	inbox := h.inbox("3fa9")
	staged, _, err := workspace.StageMedia(t.Context(), h.layout(config.AccessNone), workspace.Media{
		Roots: []string{inbox}, Sources: []workspace.Source{{Path: filepath.Join(inbox, "3fa9"), Name: "../../etc/Résumé (1).pdf"}}})
	must(t, err)
	same(t, "name", filepath.Base(staged[0].Path), "input-Résumé_1_.pdf")
}

func TestMediaRefusesBadSources(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	inbox := h.inbox("good.png")
	in := func(name string) string { return filepath.Join(inbox, name) }
	secret := filepath.Join(h.base, "secret")
	write(t, secret, "key")
	write(t, filepath.Join(h.base, "inbox-two", "x"), "key")
	must(t, os.Symlink(secret, in("link")))
	must(t, os.Symlink(h.base, in("dir-link")))
	must(t, os.Link(secret, in("hard")))
	must(t, unix.Mkfifo(in("pipe"), 0o644))
	must(t, os.Mkdir(in("dir"), 0o755))
	write(t, in("large"), "")
	must(t, os.Truncate(in("large"), workspace.MaxMediaBytes+1))
	for source, want := range map[string]string{
		secret:                               "lies in none of the directories that media may come from",
		"/etc/passwd":                        "lies in none of the directories",
		inbox + "/../secret":                 "lies in none of the directories",
		filepath.Join(h.base, "inbox-two/x"): "lies in none of the directories",
		"good.png":                           "not an absolute path",
		"":                                   "not an absolute path",
		in("link"):                           "symbolic link",
		in("dir-link/secret"):                "symbolic link",
		in("hard"):                           "more than one hard link",
		in("pipe"):                           "named pipe",
		in("dir"):                            "is a directory",
		in("none"):                           "no such file",
		in("nul\x00"):                        "leads out of its directory",
		in("large"):                          "larger than 50 MiB",
	} {
		t.Run(strings.ReplaceAll(source, h.base, ""), func(t *testing.T) {
			staged, warnings := stage(t, h.layout(config.AccessNone), inbox, source, in("good.png"))
			if len(staged) != 1 || staged[0].Source != in("good.png") {
				t.Errorf("staged %+v", staged)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "not staged: ") || !strings.Contains(warnings[0].String(), want) {
				t.Errorf("warnings %v, want %q", warnings, want)
			}
		})
	}
}

func TestMediaAtTheLimits(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	inbox := h.inbox("a")
	path := filepath.Join(inbox, "a")
	must(t, os.Truncate(path, workspace.MaxMediaBytes))
	staged, _ := stage(t, h.layout(config.AccessNone), inbox, path)
	same(t, "size", staged[0].Size, int64(workspace.MaxMediaBytes))
	must(t, os.Truncate(path, 1))
	staged, warnings := stage(t, h.layout(config.AccessNone), inbox, slices.Repeat([]string{path}, workspace.MaxMediaFiles+5)...)
	same(t, "staged", len(staged), workspace.MaxMediaFiles)
	warned(t, warnings, path, "more than 100 files")
}

func TestMediaWithoutSourcesMakesNothing(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	stage(t, h.layout(config.AccessNone), h.inbox())
	stage(t, h.layout(config.AccessNone), h.inbox(), "/etc/passwd")
	same(t, "the copy", len(names(t, h.copy)), 0)
}

func TestMediaRootMayBeReachedByALink(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	inbox := h.inbox("a.png")
	way := filepath.Join(h.base, "way")
	must(t, os.Symlink(inbox, way))
	for _, source := range []string{filepath.Join(way, "a.png"), filepath.Join(inbox, "a.png")} {
		staged, warnings := stage(t, h.layout(config.AccessNone), way, source)
		if len(staged) != 1 {
			t.Errorf("%s: %v", source, warnings)
		}
	}
}

// The advisory that this package exists to answer: a link planted in the
// workspace made the host write outside of it.
func TestMediaNeverFollowsAPlantedLink(t *testing.T) {
	for _, planted := range []string{"media", "media/inbound"} {
		for _, access := range []config.Access{config.AccessNone, config.AccessRW} {
			t.Run(planted+" under "+string(access), func(t *testing.T) {
				h := newHouse(t)
				h.prepare()
				l := h.layout(access)
				outside := filepath.Join(h.base, "outside")
				must(t, os.MkdirAll(filepath.Join(outside, "inbound"), 0o755))
				before := snapshot(t, outside)
				must(t, os.MkdirAll(filepath.Dir(filepath.Join(l.WorkspaceDir, planted)), 0o755))
				must(t, os.Symlink(outside, filepath.Join(l.WorkspaceDir, planted)))
				inbox := h.inbox("a.png")
				_, _, err := workspace.StageMedia(t.Context(), l, workspace.Media{
					Roots: []string{inbox}, Sources: []workspace.Source{{Path: filepath.Join(inbox, "a.png")}}})
				fails(t, err, "stage media in "+l.WorkspaceDir, "Remove media/inbound from the workspace")
				fails(t, err, "symbolic link", "Remove media/inbound")
				same(t, "outside", snapshot(t, outside), before)
			})
		}
	}
}

func TestMediaOnAFullDisk(t *testing.T) {
	disk := smallDisk(t, "128k")
	h := newHouse(t)
	h.root = filepath.Join(disk, "sandboxes")
	h.copy = filepath.Join(h.root, slug)
	h.prepare()
	inbox := h.inbox()
	for i := range 10 {
		write(t, filepath.Join(inbox, fmt.Sprint(i)), strings.Repeat("x", 32<<10))
	}
	media := workspace.Media{Roots: []string{inbox}}
	for i := range 10 {
		media.Sources = append(media.Sources, workspace.Source{Path: filepath.Join(inbox, fmt.Sprint(i))})
	}
	staged, _, err := workspace.StageMedia(t.Context(), h.layout(config.AccessNone), media)
	fails(t, err, "no space left on device", "Free space on the disk of "+h.copy)
	turn := filepath.Join(h.copy, filepath.Dir(staged[0].Path))
	same(t, "files", len(names(t, turn)), len(staged))
	for _, s := range staged {
		same(t, s.Path, len(read(t, filepath.Join(h.copy, s.Path))), 32<<10)
	}
}

func TestMediaEndsWithTheContext(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	inbox := h.inbox("a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := workspace.StageMedia(ctx, h.layout(config.AccessNone), workspace.Media{
		Roots: []string{inbox}, Sources: []workspace.Source{{Path: filepath.Join(inbox, "a")}}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
