package gate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/atoll-run/atoll/internal/approval"
	"github.com/atoll-run/atoll/internal/store"
)

// In the mode auto what passes is applied once it stays the same, and the rest waits.
func TestApplyPassing(t *testing.T) {
	s := newSite(t, project())
	g := s.open()
	s.write("tree", "a.txt", "one\n")
	s.write("tree", "Makefile", "all:\n")
	step := func(last bool, want ...string) {
		t.Helper()
		_, applied, err := g.ApplyPassing(t.Context(), "auto", last)
		s.must(err)
		var got []string
		if applied != nil {
			got = applied.Files
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("applied %q, want %q", got, want)
		}
	}
	step(false)
	s.write("tree", "a.txt", "two\n")
	step(false)
	step(false, "a.txt")
	step(false)
	s.write("tree", "b.txt", "three\n")
	step(true, "b.txt")
	for _, file := range []string{"README.md", "a.txt", "b.txt", "c.txt", "d.txt", "run.sh", "swap"} {
		s.remove("tree", file)
	}
	s.write("tree", "new.txt", "x\n")
	step(true, "new.txt")
	if _, err := os.Stat(s.path("base", "a.txt")); err != nil {
		t.Errorf("many deletions were applied: %v", err)
	}
}

// What needs a person is asked, and the answer holds for what was asked.
func TestQuestion(t *testing.T) {
	for _, answer := range []approval.Answer{approval.Once, approval.Deny} {
		s := newSite(t, project())
		db, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "db"))
		s.must(err)
		t.Cleanup(func() { _ = db.Close() })
		queue := approval.New(db, nil)
		g := s.open()
		if r, err := s.collect(g).Question("slug/0", "/base", approval.Owner{}); r != nil || err != nil {
			t.Errorf("nothing to ask: %+v, %v", r, err)
		}
		s.write("tree", "Makefile", "all:\n")
		s.write("tree", "a.txt", "x\n")
		request, err := s.collect(g).Question("slug/0", "/base", approval.Owner{Agent: "main"})
		s.must(err)
		asked, err := queue.Ask(t.Context(), request)
		s.must(err)
		if applied, err := g.ActOn(t.Context(), asked, request); applied != nil || err != nil {
			t.Errorf("an open question: %+v, %v", applied, err)
		}
		answered, err := queue.Answer(t.Context(), asked.ID, approval.Reply{Answer: answer, Hash: asked.Hash, By: "ann"})
		s.must(err)
		s.write("tree", "Makefile", "evil:\n")
		other, err := s.collect(g).Question("slug/0", "/base", approval.Owner{Agent: "main"})
		s.must(err)
		if applied, err := g.ActOn(t.Context(), answered, other); applied != nil || err != nil {
			t.Errorf("other content: %+v, %v", applied, err)
		}
		s.write("tree", "Makefile", "all:\n")
		request, err = s.collect(g).Question("slug/0", "/base", approval.Owner{Agent: "main"})
		s.must(err)
		applied, err := g.ActOn(t.Context(), answered, request)
		s.must(err)
		data, err := os.ReadFile(s.path("base", "Makefile"))
		if answer == approval.Once && (len(applied.Files) != 1 || string(data) != "all:\n" || err != nil) {
			t.Errorf("approved: %+v, %q, %v", applied, data, err)
		}
		if answer == approval.Deny && (applied != nil || err == nil || withheld(s.collect(g), withheldRejected) != 1) {
			t.Errorf("denied: %+v, %v", applied, err)
		}
	}
}
