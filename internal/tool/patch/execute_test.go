package patch_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/tool/patch"
)

// everything does all that a patch can do.
const everything = `*** Begin Patch
*** Add File: new
+n
*** Update File: change
@@
-c
+C
*** Delete File: gone
*** Update File: from
*** Move to: dir/to
@@
-m
+M
*** Update File: moved
*** Move to: dir/moved
*** Delete File: last
*** End Patch
`

const everythingCalls = 7 // of methods of an FS that change something

func everythingBefore() *memory {
	m := newMemory(map[string]string{"change": "c\n", "gone": "g\n", "from": "m\n", "moved": "x\n", "keep": "k\n", "last": "l\n"})
	m.put("gone", "g\n", 0o755)
	return m
}

func mustParse(t *testing.T, text string) *patch.Patch {
	t.Helper()
	p, err := patch.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestApplyEverything(t *testing.T) {
	m := everythingBefore()
	plan, err := mustParse(t, everything).Apply(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"new": "644 n\n", "change": "640 C\n", "dir/to": "640 M\n", "dir/moved": "640 x\n", "keep": "640 k\n"}
	if diff := cmp.Diff(want, m.contents()); diff != "" {
		t.Error(diff)
	}
	if m.calls != everythingCalls {
		t.Errorf("%d calls, want %d", m.calls, everythingCalls)
	}
	diffs := ""
	for _, op := range plan.Operations {
		diffs += op.Diff(0)
	}
	wantDiffs := "--- /dev/null\n+++ new\n@@ -0,0 +1,1 @@\n+n\n" +
		"--- change\n+++ change\n@@ -1,1 +1,1 @@\n-c\n+C\n" +
		"--- gone\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-g\n" +
		"--- from\n+++ dir/to\n@@ -1,1 +1,1 @@\n-m\n+M\n" +
		"--- last\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-l\n"
	if diff := cmp.Diff(wantDiffs, diffs); diff != "" {
		t.Error(diff)
	}
}

// TestAnyFailureUndoesEverything breaks every call, before and after its
// effect, and gives up in the middle.
func TestAnyFailureUndoesEverything(t *testing.T) {
	broken := errors.New("wire is broken")
	for at := 1; at <= everythingCalls; at++ {
		for _, afterward := range []bool{false, true} {
			m := everythingBefore()
			before := m.contents()
			m.breakAt, m.breakErr, m.afterward = at, broken, afterward
			_, err := mustParse(t, everything).Apply(t.Context(), m)
			failed, ok := errors.AsType[*patch.ExecuteError](err)
			if !ok || !errors.Is(err, broken) || len(failed.NotUndone) != 0 || !strings.HasSuffix(err.Error(), "wire is broken; nothing was changed") {
				t.Errorf("call %d, afterward %v: %v", at, afterward, err)
			}
			if diff := cmp.Diff(before, m.contents()); diff != "" {
				t.Errorf("call %d, afterward %v:\n%s", at, afterward, diff)
			}
		}
	}
}

func TestGivingUpUndoesEverything(t *testing.T) {
	for at := 1; at <= everythingCalls; at++ {
		m := everythingBefore()
		before := m.contents()
		ctx, cancel := context.WithCancel(t.Context())
		m.onCall = func(m *memory) {
			if m.calls+1 == at {
				cancel()
			}
		}
		_, err := mustParse(t, everything).Apply(ctx, m)
		cancel()
		if at < everythingCalls && !errors.Is(err, context.Canceled) || at == everythingCalls && err != nil {
			t.Errorf("call %d: %v", at, err)
		}
		if diff := cmp.Diff(before, m.contents()); at < everythingCalls && diff != "" {
			t.Errorf("call %d:\n%s", at, diff)
		}
	}
}

// TestChangedFilesAreRefused changes each file between the plan and its
// execution.
func TestChangedFilesAreRefused(t *testing.T) {
	for _, name := range []string{"new", "change", "gone", "from", "dir/to", "moved", "dir/moved", "last"} {
		m := everythingBefore()
		plan, err := mustParse(t, everything).Plan(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		m.put(name, "somebody else's\n", 0o600)
		before := m.contents()
		err = plan.Execute(t.Context(), m)
		if !errors.Is(err, patch.ErrChanged) && !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, m.contents()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestSameChangeBySomebodyElse must not take back what another made, even if it
// looks as if this patch had made it.
func TestSameChangeBySomebodyElse(t *testing.T) {
	m := newMemory(map[string]string{"f": "a\n"})
	plan, err := mustParse(t, "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch").Plan(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	m.put("f", "b\n", 0o640)
	if err := plan.Execute(t.Context(), m); !errors.Is(err, patch.ErrChanged) {
		t.Errorf("got %v", err)
	}
	if got := m.plain()["f"]; got != "b\n" {
		t.Errorf("f is %q", got)
	}
}

// TestWhatCannotBeUndoneIsSaid breaks the way back too: the file that was just
// changed is changed again by somebody else.
func TestWhatCannotBeUndoneIsSaid(t *testing.T) {
	m := everythingBefore()
	m.breakAt, m.breakErr = 3, errors.New("disk is full")
	m.onCall = func(m *memory) {
		if m.calls+1 == 3 {
			m.put("change", "somebody else's\n", 0o640)
		}
	}
	_, err := mustParse(t, everything).Apply(t.Context(), m)
	failed, ok := errors.AsType[*patch.ExecuteError](err)
	if !ok || len(failed.NotUndone) != 1 || failed.Path != "gone" {
		t.Fatalf("got %v", err)
	}
	want := `"gone": disk is full; changes that could not be undone: "change": change: file changed since it was read`
	if err.Error() != want {
		t.Errorf("got %v", err)
	}
	if m.plain()["change"] != "somebody else's\n" || m.plain()["new"] != "" {
		t.Errorf("got %v", m.plain())
	}
}

func TestConflictsCarryHintsAndFacts(t *testing.T) {
	m := newMemory(map[string]string{"f": "func one() {\n\treturn 1\n}\n"})
	_, err := mustParse(t, "*** Begin Patch\n*** Update File: f\n@@\n-    return 1\n+    return 2\n*** End Patch").Plan(t.Context(), m)
	c, ok := errors.AsType[*patch.ConflictError](err)
	if !ok || !errors.Is(err, patch.ErrNotFound) || errhint.Of(err) == "" || len(c.Candidates) != 1 {
		t.Fatalf("got %#v, hint %q", err, errhint.Of(err))
	}
	want := "\"f\", patch line 3: lines are not in the file; nearest: line 2 (only white space differs)\n" +
		"line 2 (only white space differs):\n2\t\treturn 1\n"
	if diff := cmp.Diff(want, c.Explain()); diff != "" {
		t.Error(diff)
	}
}
