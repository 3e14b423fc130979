package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
)

// attacker is an agent that exchanges a directory of the workspace for a link
// to a place outside, and back, as fast as it can, until it is stopped. It
// counts how often the link was in place.
type attacker struct {
	path    string // the directory
	outside string
	swaps   atomic.Int64
	done    chan struct{}
	wg      sync.WaitGroup
}

func attack(path, outside string) *attacker {
	a := &attacker{path: path, outside: outside, done: make(chan struct{})}
	a.wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-a.done:
				return
			default:
				a.swap(i)
			}
		}
	})
	return a
}

// swap puts a real directory and a link in each other's place. Errors are the
// host's doing: it removed one of them.
func (a *attacker) swap(i int) {
	link := fmt.Sprintf("%s-%d", a.path, i)
	if os.Symlink(a.outside, link) != nil {
		return
	}
	_ = os.MkdirAll(a.path, 0o777)
	if unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, a.path, unix.RENAME_EXCHANGE) == nil {
		a.swaps.Add(1)
		_ = unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, a.path, unix.RENAME_EXCHANGE)
	}
	_ = os.RemoveAll(link)
}

// leastSwaps is how often the link must have been in place for a race.
const leastSwaps = 100

// goesOn reports whether the host works on after i rounds: until there were enough, and
// the attacker, who may get less of the processors, has had his chances.
func (a *attacker) goesOn(i, rounds int) bool {
	return i < rounds || a.swaps.Load() < leastSwaps && i < 100*rounds
}

func (a *attacker) stop(t *testing.T) {
	t.Helper()
	close(a.done)
	a.wg.Wait()
	t.Logf("the link was in place %d times", a.swaps.Load())
	if a.swaps.Load() < leastSwaps {
		t.Errorf("the link was in place %d times only: no race was run", a.swaps.Load())
	}
}

// precious makes a place outside that looks like what the host writes and
// removes inside, so that a followed link would do harm.
func precious(t *testing.T, h house) string {
	t.Helper()
	outside := filepath.Join(h.base, "outside")
	for _, rel := range []string{
		"SOUL.md", "paint/SKILL.md", "paint/deep/x.md", "deep/x.md", "stale/x", "inbound/x", "SKILL.md/x", "x",
	} {
		write(t, filepath.Join(outside, rel), "precious "+rel)
	}
	return outside
}

func TestRaceSkills(t *testing.T) {
	for _, target := range []string{"skills", "skills/paint", "skills/paint/deep", "skills/stale"} {
		t.Run(target, func(t *testing.T) {
			h := newHouse(t)
			h.prepare()
			write(t, filepath.Join(h.skill("paint"), "deep", "x.md"), "skill")
			outside := precious(t, h)
			before := snapshot(t, outside)
			a := attack(filepath.Join(h.copy, target), outside)
			for i := 0; a.goesOn(i, 100); i++ {
				write(t, filepath.Join(h.agent, "skills", "paint", "deep", "x.md"), fmt.Sprint(i)) // so that there is work
				syncSkills(t, h, workspace.SkillOptions{})
			}
			a.stop(t)
			same(t, "outside", snapshot(t, outside), before)
			report := syncSkills(t, h, workspace.SkillOptions{})
			same(t, "skills once it is calm", report.Skills, []string{"paint"})
		})
	}
}

func TestRaceMedia(t *testing.T) {
	for _, access := range []config.Access{config.AccessNone, config.AccessRW} {
		for _, target := range []string{"media", "media/inbound"} {
			t.Run(target+" under "+string(access), func(t *testing.T) {
				h := newHouse(t)
				h.prepare()
				l := h.layout(access)
				outside := precious(t, h)
				before := snapshot(t, outside)
				inbox := h.inbox("a.png")
				media := workspace.Media{Roots: []string{inbox}, Sources: []workspace.Source{{Path: filepath.Join(inbox, "a.png")}}}
				a := attack(filepath.Join(l.WorkspaceDir, target), outside)
				staged := 0
				for i := 0; a.goesOn(i, 300); i++ {
					if _, _, err := workspace.StageMedia(t.Context(), l, media); err == nil {
						staged++
					}
				}
				a.stop(t)
				same(t, "outside", snapshot(t, outside), before)
				if staged == 0 {
					t.Error("never staged anything: no race was run")
				}
			})
		}
	}
}

func TestRaceReseedAndRemove(t *testing.T) {
	for _, discard := range []bool{false, true} {
		t.Run(fmt.Sprintf("discard %v", discard), func(t *testing.T) {
			h := newHouse(t)
			seedAll(t, h)
			h.prepare()
			outside := precious(t, h)
			before, source := snapshot(t, outside), snapshot(t, h.agent)
			attackers := []*attacker{
				attack(filepath.Join(h.copy, "SOUL.md"), outside),
				attack(filepath.Join(h.copy, "work"), outside),
			}
			for i := 0; attackers[0].goesOn(i, 40) || attackers[1].goesOn(i, 40); i++ {
				_, _ = workspace.Reseed(t.Context(), h.layout(config.AccessNone), workspace.Options{}, discard)
				_, _ = workspace.DriftOf(h.layout(config.AccessNone))
				_, _ = workspace.Changes(t.Context(), h.layout(config.AccessNone))
			}
			for _, a := range attackers {
				a.stop(t)
			}
			same(t, "outside", snapshot(t, outside), before)
			same(t, "agent workspace", snapshot(t, h.agent), source)
			must(t, workspace.Remove(t.Context(), h.layout(config.AccessNone)))
			must(t, workspace.Sweep(t.Context(), h.root))
			same(t, "trash", len(names(t, filepath.Join(h.root, ".atoll", "trash"))), 0)
		})
	}
}

// An agent that keeps filling a directory cannot hold the host for ever.
func TestRaceRemoveOfADirectoryThatFillsAgain(t *testing.T) {
	h := newHouse(t)
	h.prepare()
	h.skill("paint")
	stale := filepath.Join(h.copy, "skills", "stale")
	must(t, os.MkdirAll(stale, 0o755))
	dir, err := unix.Open(stale, unix.O_DIRECTORY, 0) // keeps working wherever it is moved
	must(t, err)
	defer func() { must(t, unix.Close(dir)) }()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				_ = unix.Mkdirat(dir, fmt.Sprint(i), 0o755)
			}
		}
	})
	ctx, cancel := timeout(t, 300)
	defer cancel()
	workspace.SyncSkills(ctx, h.layout(config.AccessNone), workspace.SkillOptions{})
	close(done)
	wg.Wait()
	report := syncSkills(t, h, workspace.SkillOptions{})
	same(t, "skills once it is calm", report.Skills, []string{"paint"})
	same(t, "skills/", names(t, filepath.Join(h.copy, "skills")), []string{"paint"})
}
