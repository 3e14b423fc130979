package gate

import (
	"errors"
	"testing"
)

func project() map[string]string {
	return map[string]string{
		"README.md": "hello\n", "src/cart.go": "cart\n", "src/util.go": "util\n", "old/legacy.go": "x\n", "old/deep/er.go": "y\n", "run.sh": "echo\n",
		"swap": "file\n", "dir/one": "1\n", "dir/two": "2\n", "link": "-> README.md", "a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n",
	}
}

// everyKind makes changes of every kind.
const everyKind = `
echo more >> src/cart.go
echo test > src/cart_test.go
mkdir -p new/deep; echo new > new/deep/file.txt
rm -r old
ln -sfn src/cart.go link
chmod 755 run.sh
rm swap; mkdir swap; echo in > swap/in
rm -r dir; echo now a file > dir
`

// approveAll overrides what needs it and approves everything.
func (s *site) approveAll(g *Gate, set *Set) *Applied {
	s.t.Helper()
	for _, e := range set.Entries {
		if e.Verdict == Approval {
			s.must(g.Override(e.Path, e.SHA256, "the test says so", "me"))
		}
	}
	set, err := g.Last()
	s.must(err)
	applied, err := g.Approve(s.t.Context(), passing(set), Decision{By: "me", ConfirmDeletions: true})
	s.must(err)
	return applied
}

func TestCollectApproveUndo(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		before := s.tree("base")
		s.inside(everyKind)
		g := s.open()
		set := s.collect(g)
		want := `deleted dir/one pass
deleted dir/two pass
deleted old pass
deleted old/deep pass
deleted old/deep/er.go pass
deleted old/legacy.go pass
replaced dir approval replaced
link link pass
added new/deep/file.txt pass
mode run.sh approval executable
modified src/cart.go pass
added src/cart_test.go pass
replaced swap approval replaced
added swap/in pass`
		if got := verdicts(set); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if s.tree("base") != before {
			t.Error("collecting changed the base")
		}
		applied := s.approveAll(g, set)
		after := s.tree("base")
		s.inside("cp -a . " + s.path("seen", ""))
		if after != s.tree("seen") {
			t.Errorf("the base has\n%s\nthe sandbox\n%s", after, s.tree("seen"))
		}
		if set := s.collect(g); len(set.Entries) != 0 {
			t.Errorf("left: %s", verdicts(set))
		}
		undone, err := g.Undo(t.Context(), applied.ID, "me")
		s.must(err)
		if s.tree("base") != before {
			t.Errorf("after undo the base has\n%s\nwant\n%s", s.tree("base"), before)
		}
		if _, err := g.Undo(t.Context(), applied.ID, "me"); !errors.Is(err, ErrUndone) {
			t.Errorf("undone twice: %v", err)
		}
		if _, err := g.Undo(t.Context(), undone.ID, "me"); err != nil || s.tree("base") != after {
			t.Errorf("undoing the undo: %v\n%s", err, s.tree("base"))
		}
		if past := g.History(); len(past) != 3 || past[2].ID != applied.ID || past[2].Undoable || !past[0].Undoable {
			t.Errorf("history %+v", past)
		}
	})
}
