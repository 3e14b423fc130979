package overlay

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// apply does to the base what the gate does: it writes, and notes it.
func (s *stage) apply(t *testing.T, files map[string]string, deleted ...string) {
	t.Helper()
	fill(t, s.Base, files)
	paths := slices.Clone(deleted)
	for path := range files {
		paths = append(paths, path)
	}
	for _, path := range deleted {
		if err := os.RemoveAll(filepath.Join(s.Base, path)); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * tick) // what the sandbox wrote a moment ago is not noted
	if err := s.NoteApplied(paths...); err != nil {
		t.Fatal(err)
	}
}

// What was applied is no change any more, also when the host edits it later.
func TestAppliedIsNoChange(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `echo more >> README.md; rm -r old; mkdir new; echo n > new/n; chmod 755 run.sh`)
		s.apply(t, map[string]string{"README.md": "hello\nmore\n", "new/n": "n\n"}, "old")
		if err := os.Chmod(filepath.Join(s.Base, "run.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		s.expect(t)
		fill(t, s.Base, map[string]string{"README.md": "the host's\n", "old/again": "the host's\n"})
		s.expect(t)
		s.begun(t, map[string]bool{"README.md": false, "old/again": false, "new/n": true})
		s.inside(t, `echo even more >> README.md`)
		s.expect(t, "modified README.md")
	})
}

func TestReconcileDropsWhatEqualsTheBase(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `touch same; echo more >> README.md; rm dir/one; mkdir -p x/y; chmod 700 src; touch src/util.go old/deep/er.go; rm link; ln -s README.md link`)
		s.apply(t, nil, "dir/one")
		if err := s.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.expect(t, "modified README.md", "added x/", "added x/y/", "mode src/ 755 -> 700")
		if s.Kind == Copy {
			return
		}
		for name, want := range map[string]bool{"same": false, "README.md": true, "dir": false, "src": true, "src/util.go": false, "old": false, "link": false, "x/y": true} {
			if _, err := os.Lstat(filepath.Join(s.Upper(), name)); (err == nil) != want {
				t.Errorf("%s in the upper: %v, want %v", name, err == nil, want)
			}
		}
		fill(t, s.Base, map[string]string{"same": "by the host\n"})
		s.inside(t, `test "$(cat same)" = "by the host" && test "$(cat README.md)" = "hello
more" && ! test -e dir/one`)
	})
}

func TestTornAfterAnotherBoot(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		if s.Kind == Copy {
			return // an ordinary directory, which the file system keeps whole
		}
		s.inside(t, "echo x > x")
		again, err := Prepare(t.Context(), s.request)
		if err != nil || again.Torn {
			t.Fatalf("in one boot: %+v, %v", again, err)
		}
		again.Boot = "another"
		if err := again.save(); err != nil {
			t.Fatal(err)
		}
		if again, err = Prepare(t.Context(), s.request); err != nil || !again.Torn {
			t.Fatalf("after another boot: %+v, %v", again, err)
		}
		for c, err := range again.Changes(t.Context()) {
			if err != nil || !c.Torn {
				t.Errorf("%+v, %v is not torn", c, err)
			}
		}
		if err := BeforeMount(s.Dir); !errors.Is(err, ErrTorn) {
			t.Errorf("BeforeMount: %v, want ErrTorn", err)
		}
		if err := again.Reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if again, err = Prepare(t.Context(), s.request); err != nil || !again.Torn {
			t.Fatalf("after Reconcile: %+v, %v", again, err)
		}
		if err := again.AcceptTorn(); err != nil {
			t.Fatal(err)
		}
		s.inside(t, "test -e x")
		if again, err = Load(s.Dir); err != nil || again.Torn {
			t.Fatalf("accepted: %+v, %v", again, err)
		}
	})
}

// A sandbox that ended in AfterStop is not torn by a boot; one that was started
// again is.
func TestStoppedIsNotTorn(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, "echo x > x; mkdir d; ln -s x d/l; mkfifo d/p; mkdir dark; chmod 000 dark; mkdir r; touch r/r; chmod 444 r")
		if err := AfterStop(s.Dir); err != nil {
			t.Fatal(err)
		}
		reboot := func(torn bool) {
			t.Helper()
			now, err := Load(s.Dir)
			if err != nil {
				t.Fatal(err)
			}
			now.Boot = "another"
			if err := now.save(); err != nil {
				t.Fatal(err)
			}
			if err := AfterStop(s.Dir); err != nil { // of a sandbox that the boot ended
				t.Fatal(err)
			}
			if again, err := Prepare(t.Context(), s.request); err != nil || again.Torn != torn {
				t.Fatalf("torn %v, %v, want %v", again.Torn, err, torn)
			}
		}
		reboot(false)
		s.inside(t, "test -e x")
		reboot(s.Kind == Kernel)
	})
}

func TestResetMovesAside(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, "echo x > x")
		if err := s.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(s.Dir); !errors.Is(err, ErrNone) {
			t.Errorf("after Reset: %v", err)
		}
		parent := filepath.Dir(s.Dir)
		aside, err := filepath.Glob(filepath.Join(parent, discardedPrefix+"*"))
		if err != nil || len(aside) != 1 {
			t.Fatalf("moved aside: %q, %v", aside, err)
		}
		old, err := Load(aside[0])
		if err != nil {
			t.Fatal(err)
		}
		(&stage{Tree: old}).expect(t, "added x")
		again, err := Prepare(t.Context(), s.request)
		if err != nil {
			t.Fatal(err)
		}
		(&stage{Tree: again}).expect(t)
		for _, then := range []struct {
			after time.Duration
			left  int
		}{{KeepDiscarded - time.Hour, 1}, {KeepDiscarded + time.Hour, 0}} {
			if err := removeDiscarded(parent, time.Now().Add(then.after)); err != nil {
				t.Fatal(err)
			}
			if left, err := filepath.Glob(filepath.Join(parent, discardedPrefix+"*")); err != nil || len(left) != then.left {
				t.Errorf("after %v: %q, %v", then.after, left, err)
			}
		}
	})
}

func TestHostChanged(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, "echo x >> README.md; rm dir/one")
		if got, err := s.HostChanged(t.Context(), 10); err != nil || len(got) != 0 {
			t.Errorf("before: %q, %v", got, err)
		}
		s.apply(t, map[string]string{"applied/a": "a\n"}, "dir/one")
		fill(t, s.Base, map[string]string{"src/cart.go": "saved\n", "src/new.go": "new\n", "more/x": "x\n"})
		if err := os.Remove(filepath.Join(s.Base, "same")); err != nil {
			t.Fatal(err)
		}
		got, err := s.HostChanged(t.Context(), 10)
		if slices.Sort(got); err != nil || strings.Join(got, " ") != "more/x same src/cart.go src/new.go" {
			t.Errorf("after: %q, %v", got, err)
		}
		if got, err := s.HostChanged(t.Context(), 2); err != nil || len(got) != 2 {
			t.Errorf("limited: %q, %v", got, err)
		}
		fill(t, s.Base, map[string]string{".git/index": "new\n"})
		s.Hidden = append(s.Hidden, Hidden{Path: "more/x"})
		if n, all, err := s.CountHostChanged(t.Context(), 1000); n != 3 || !all || err != nil {
			t.Errorf("counted %d, all %v, %v", n, all, err)
		}
		if n, all, err := s.CountHostChanged(t.Context(), 12); n > 2 || all || err != nil {
			t.Errorf("counted %d of a part, all %v, %v", n, all, err)
		}
	})
}

// Files of ours are closed when an overlay is discarded and when it was read.
func TestNoDescriptorIsLeft(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `echo x >> README.md; rm -r old; mkdir -p a/b/c; echo x > a/b/c/d; mkfifo a/pipe`)
		count := func() int {
			names, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(names)
		}
		before := count()
		for range 3 {
			_ = s.lines(t)
			for range s.Changes(t.Context()) {
				break
			}
			_ = s.content(t, "a/b/c/d")
			s.begun(t, map[string]bool{"src/cart.go": true, "a/b/c/d": true, "swap/x": true})
			if err := errors.Join(s.NoteApplied("README.md", "none/there"), s.Reconcile(t.Context())); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"a/pipe", "a/none/x", "old/legacy.go"} {
				if _, err := s.Open(path); err == nil {
					t.Errorf("Open(%q) succeeded", path)
				}
			}
		}
		if after := count(); after > before+1 { // the notes stay open
			t.Errorf("%d descriptors, before %d", after, before)
		}
	})
}
