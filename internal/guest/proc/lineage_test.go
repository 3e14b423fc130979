package proc

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMarks asks of every pair of limits that a process can reach from its own
// whether it still counts as a descendant, and as exactly no other exec's.
func TestMarks(t *testing.T) {
	for name, l := range map[string]*Lineage{
		"outermost": lineageOf(unix.RLIM_INFINITY, unix.RLIM_INFINITY), "inner": inside(lineageOf(unlimited, unlimited)), "innermost": inside(inside(lineageOf(unlimited, unlimited))),
	} {
		t.Run(name, func(t *testing.T) { testMarks(t, l) })
	}
}

// inside is the lineage of a guest that is the fifth exec of another.
func inside(outer *Lineage) *Lineage {
	at := outer.Limits(5)
	return lineageOf(at[0].Hard, at[1].Hard)
}

func testMarks(t *testing.T, l *Lineage) {
	const n = 12
	for own := Mark(1); own <= n; own++ {
		at := l.Limits(own)
		for other := Mark(1); other <= n; other++ {
			for _, up := range []uint64{at[0].Hard, l.Limits(other)[0].Hard, 0} {
				for _, down := range []uint64{at[1].Hard, l.Limits(other)[1].Hard, 0} {
					if up > at[0].Hard || down > at[1].Hard {
						continue // would need a privilege
					}
					if !covers(l, up, down, own) {
						t.Fatalf("%d at (%d, %d) is not found", own, up, down)
					}
					if untouched := up == at[0].Hard && down == at[1].Hard; untouched && other != own && covers(l, up, down, other) {
						t.Fatalf("%d counts as %d", own, other)
					}
				}
			}
		}
		if covers(l, unix.RLIM_INFINITY, unix.RLIM_INFINITY, own) || covers(l, l.up, l.down, own) {
			t.Errorf("a process that no command started counts as %d", own)
		}
	}
}

func covers(l *Lineage, up, down uint64, m Mark) bool {
	lowest, highest := l.decode(up, down)
	return lowest <= m && m <= highest
}

func TestNestedGuestsHaveMarks(t *testing.T) {
	outer := lineageOf(unlimited, unlimited)
	at := outer.Limits(5)
	inner := inside(outer)
	for _, m := range []Mark{1, 2, 300, innerMarks - 1} {
		within := inner.Limits(m)
		if lowest, highest := outer.decode(within[0].Hard, within[1].Hard); lowest != 5 || highest != 5 {
			t.Errorf("what a guest inside exec 5 starts as its %d belongs to execs %d to %d", m, lowest, highest)
		}
	}
	within := inner.Limits(1)
	for _, deeper := range inside(inner).Limits(7) {
		if deeper.Hard > within[0].Hard && deeper.Resource == limitUp {
			t.Error("a limit is raised")
		}
	}
	if !covers(inner, within[0].Hard, within[1].Hard, 1) || covers(inner, at[0].Hard, at[1].Hard, 1) {
		t.Error("the inner guest does not tell its own from others")
	}
}

func TestNoRoomForMarks(t *testing.T) {
	if lineageOf(innerMarks, unlimited).check() == nil || lineageOf(unlimited, 5).check() == nil || lineageOf(1<<20, 1<<20).check() == nil {
		t.Error("low limits were accepted")
	}
	if _, err := NewLineage(); err != nil {
		t.Error(err)
	}
}

func TestProcessState(t *testing.T) {
	cmd := exec.Command("sleep", "100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if s := processState(cmd.Process.Pid); s.dead() || s.threads != 1 {
		t.Errorf("%+v", s)
	}
	_ = cmd.Process.Kill()
	for !processState(cmd.Process.Pid).dead() {
	}
	_ = cmd.Wait()
	if s := processState(cmd.Process.Pid); !s.dead() {
		t.Errorf("%+v", s)
	}
	if (state{letter: 'Z', threads: 2}).dead() {
		t.Error("a process whose first thread has ended is not dead")
	}
}
