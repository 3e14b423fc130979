package gate

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// steps counts the checkpoints of an approval.
func (s *site) steps(t *testing.T) (n int) {
	t.Helper()
	s.opt.checkpoint = func(string) { n++ }
	g, err := Open(t.Context(), s.opt)
	s.must(err)
	applied := s.approveAll(g, s.collect(g))
	steps := n
	_, err = g.Undo(t.Context(), applied.ID, "me")
	s.must(errors.Join(err, g.Close()))
	return steps
}

// The base is moved away or deleted in the middle of an approval: what was moved has
// all of it or nothing, and no other directory of the name gets any.
func TestAttackBaseGoesMeanwhile(t *testing.T) {
	s := newSite(t, project())
	before := s.tree("base")
	s.inside(everyKind)
	total := s.steps(t)
	for at := 0; at < total; at += max(1, total/need.Rounds(3, 12)) {
		for _, goes := range []string{"moved", "deleted"} {
			t.Run(fmt.Sprintf("%s at step %d", goes, at), func(t *testing.T) {
				s := newSite(t, project())
				s.inside(everyKind)
				n := -1
				s.opt.checkpoint = func(string) {
					if n++; n != at {
						return
					}
					if goes == "moved" {
						s.must(os.Rename(s.path("base", ""), s.path("moved", "")))
					} else {
						s.remove("base", "")
					}
					s.must(os.Mkdir(s.path("base", ""), 0o755))
				}
				s.approveWhat(t)
				if n < at {
					t.Fatalf("there were %d steps", n)
				}
				if left := s.tree("base"); strings.Count(left, "\n") != 1 {
					t.Errorf("another directory has\n%s", left)
				}
				if _, err := os.Stat(s.path("moved", "")); err != nil {
					return
				}
				s.must(errors.Join(os.Remove(s.path("base", "")), os.Rename(s.path("moved", ""), s.path("base", ""))))
				s.opt.checkpoint = nil
				g := s.open() // finishes it or takes it back
				after := s.tree("base")
				if strings.Contains(after, TempPrefix) || after != before && len(g.History()) > 0 && g.History()[0].Result != ResultApplied {
					t.Errorf("the base has\n%s", after)
				}
			})
		}
	}
}

// approveWhat collects and approves what passes; the base may go meanwhile.
func (s *site) approveWhat(t *testing.T) {
	t.Helper()
	g, err := Open(t.Context(), s.opt)
	if err != nil {
		return
	}
	defer g.Close()
	set, err := g.Collect(t.Context())
	if err != nil {
		return
	}
	for _, e := range set.Entries {
		if e.Verdict == Approval {
			s.must(g.Override(e.Path, e.SHA256, "the test says so", "me"))
		}
	}
	set, err = g.Last()
	s.must(err)
	if _, err := g.Approve(t.Context(), passing(set), Decision{By: "me", ConfirmDeletions: true}); err != nil {
		t.Log(err)
	}
}

// A base that became read-only is not changed, and an approval says so.
func TestAttackReadOnlyBase(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	s := newSite(t, project())
	s.inside(`echo x > a.txt; rm b.txt; echo x > new.txt`)
	g := s.open()
	set := s.collect(g)
	base := s.path("base", "")
	s.must(errors.Join(unix.Mount(base, base, "", unix.MS_BIND, ""), unix.Mount("", base, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")))
	before := s.exact("base")
	_, err := g.Approve(t.Context(), passing(set), Decision{By: "me", ConfirmDeletions: true})
	if !errors.Is(err, unix.EROFS) || s.exact("base") != before {
		t.Errorf("approval: %v", err)
	}
	s.must(unix.Unmount(base, 0))
	_, err = g.Approve(t.Context(), passing(s.collect(g)), Decision{By: "me", ConfirmDeletions: true})
	s.must(err)
}

// The sandbox is stopped and made anew while a gate works: what is applied is what was
// there.
func TestAttackGateWhileMadeAnew(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		const rounds = 6
		stop := make(chan struct{})
		var mounted sync.Mutex // an overlay is reconciled while nothing has it mounted
		var making sync.WaitGroup
		making.Go(func() {
			for { // what making a sandbox does with an overlay
				mounted.Lock()
				tree, err := overlay.Load(s.source.Dir)
				if err == nil {
					err = tree.Reconcile(t.Context())
				}
				mounted.Unlock()
				if err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		g := s.open()
		for round := range rounds {
			mounted.Lock()
			s.inside(fmt.Sprintf("echo %d > a.txt; mkdir -p n%d; echo x > n%d/f; rm -rf n%d", round, round, round, round-1))
			mounted.Unlock()
			s.approveAll(g, s.collect(g))
			if data, err := os.ReadFile(s.path("base", "a.txt")); string(data) != fmt.Sprintln(round) || err != nil {
				t.Fatalf("round %d: %q, %v", round, data, err)
			}
		}
		close(stop)
		making.Wait()
		if left := verdicts(s.collect(g)); left != "" {
			t.Errorf("left: %s", left)
		}
	})
}
