package overlay

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// find returns the change of a path.
func (s *stage) find(t *testing.T, path string) (Change, bool) {
	t.Helper()
	for c, err := range s.Changes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Path == path {
			return c, true
		}
	}
	return Change{}, false
}

// A link is listed as a link, and nothing is read through it.
func TestAttackFileUnderALink(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		outside := t.TempDir()
		fill(t, outside, map[string]string{"secret": "secret\n"})
		s.inside(t, `rm -r src; ln -s `+outside+` src; ln -s /etc etc; ln -s . loop; ln -s ../../../../.. up`)
		s.expect(t, "replaced src", "deleted src/cart.go", "deleted src/util.go", "link etc -> /etc", "link loop -> .", "link up -> ../../../../..")
		for _, path := range []string{"src/secret", "etc/passwd", "loop/README.md", "up/etc/passwd", "src"} {
			if file, err := s.Open(path); err == nil {
				closeFile(file)
				t.Errorf("Open(%q) went through a link", path)
			}
		}
	})
}

// Each name of an inode is listed, so that each is judged.
func TestAttackHardLinks(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `mkdir -p .github/workflows; echo on: push > notes.txt; ln notes.txt .github/workflows/ci.yml; ln README.md copy`)
		s.expect(t, "added notes.txt", "added .github/", "added .github/workflows/", "added .github/workflows/ci.yml", "added copy")
		if got := s.content(t, ".github/workflows/ci.yml"); got != "on: push\n" {
			t.Errorf("read %q", got)
		}
	})
}

// Bits, capabilities and attributes are visible in the mode or no change at all.
func TestAttackPrivileges(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `chmod 4755 run.sh; printf x > sgid; chmod 2755 sgid; chmod 1777 src; "$HELPER" xattr same user.evil 1; printf y > y; "$HELPER" xattr y user.evil 1`)
		s.expect(t, "mode run.sh 644 -> 755", "added sgid", "mode src/ 755 -> 777", "added y")
		for path, bit := range map[string]os.FileMode{"run.sh": os.ModeSetuid, "sgid": os.ModeSetgid, "src": os.ModeSticky} {
			if c, ok := s.find(t, path); !ok || c.Mode&bit == 0 {
				t.Errorf("%s: %v has no %v", path, c.Mode, bit)
			}
		}
	})
}

// Pipes, sockets and devices are told and never opened.
func TestAttackSpecialFiles(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `mkfifo pipe; rm README.md; mkfifo README.md; "$HELPER" socket sock; "$HELPER" mknod null 1 3 2>/dev/null || true; rm null 2>/dev/null || true`)
		s.expect(t, "special pipe", "special README.md", "special sock")
		for _, path := range []string{"pipe", "README.md", "sock"} {
			if c, ok := s.find(t, path); !ok || c.Note == "" {
				t.Errorf("%s: %+v says nothing", path, c)
			}
			if file, err := s.Open(path); err == nil {
				closeFile(file)
				t.Errorf("Open(%q) succeeded", path)
			}
		}
	})
}

// A device that looks like a whiteout deletes nothing where there are none.
func TestAttackWhiteoutInACopy(t *testing.T) {
	s := newStage(t, ways()[0], project(), nil)
	s.inside(t, `rm README.md; "$HELPER" mknod README.md 0 0; "$HELPER" mknod new 0 0`)
	s.expect(t, "special README.md", "special new")
}

// Marks that the sandbox sets are content: the kernel escapes them in its own
// namespace, and the other namespace does not count.
func TestAttackForgedMarks(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `
touch src/.keep; rm src/.keep; chmod 755 src dir
for ns in user.overlay trusted.overlay user.overlay.overlay; do
  for dir in src dir; do
    "$HELPER" xattr $dir $ns.opaque y 2>/dev/null || true
    "$HELPER" xattr $dir $ns.redirect /old 2>/dev/null || true
  done
  printf '' > empty.txt
  "$HELPER" xattr empty.txt $ns.whiteout y 2>/dev/null || true
  "$HELPER" xattr empty.txt $ns.metacopy '' 2>/dev/null || true
done
"$HELPER" mknod same 0 0 2>/dev/null && exit 1
true`)
		s.expect(t, "added empty.txt")
		if got := s.content(t, "src/cart.go"); got != "cart\n" {
			t.Errorf("src/cart.go is %q", got)
		}
	})
}

// Marks in the upper that this mount cannot have made are told, not followed.
func TestAttackMarksOfNoMount(t *testing.T) {
	for _, w := range ways() {
		if w.want != Kernel {
			continue
		}
		ns := string(w.kernel.Marks) + ".overlay."
		for _, mark := range []struct{ path, name, value string }{
			{"src", "opaque", "x"}, {"src", "opaque", ""}, {"src", "opaque", "yes"}, {"src", "redirect", "/../etc"}, {"src", "redirect", ""}, {"src", "redirect", "/"},
			{"src", "redirect", "a/b"}, {"src", "redirect", ".."}, {"src", "redirect", "/a//b"}, {"README.md", "metacopy", ""}, {"README.md", "whiteout", "y"},
		} {
			s := newStage(t, w, project(), nil)
			s.inside(t, `echo x >> README.md; echo x >> src/cart.go`)
			if err := unix.Lsetxattr(filepath.Join(s.Upper(), mark.path), ns+mark.name, []byte(mark.value), 0); err != nil {
				t.Fatal(err)
			}
			if c, ok := s.find(t, mark.path); !ok || c.Kind != Special || c.Note != errMark.Error() {
				t.Errorf("%s: %s %s=%q: %+v", w.name, mark.path, mark.name, mark.value, c)
			}
			inner := map[string]string{"src": "src/cart.go", "README.md": "README.md"}[mark.path]
			if file, err := s.Open(inner); err == nil {
				closeFile(file)
				t.Errorf("%s: %s=%q: Open succeeded", w.name, mark.name, mark.value)
			}
			if err := s.Reconcile(t.Context()); err != nil {
				t.Errorf("Reconcile: %v", err)
			}
		}
	}
}

// New files of the host in a directory that the sandbox removed are listed as
// deleted, and are not what the agent began with.
func TestAttackWhiteoutOverNewHostFiles(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `rm -r old dir; mkdir dir; echo 1 > dir/mine`)
		fill(t, s.Base, map[string]string{"old/new": "host\n", "dir/new": "host\n"})
		want := []string{"deleted old/", "deleted old/legacy.go", "deleted old/deep/", "deleted old/deep/er.go", "deleted old/new",
			"deleted dir/one", "deleted dir/two", "added dir/mine", "deleted dir/new"}
		if s.Kind == Copy {
			want = want[:len(want)-1] // a copy never had it
		}
		s.expect(t, want...)
		s.begun(t, map[string]bool{"old/new": false, "dir/new": false, "old/legacy.go": true, "dir/one": true, "dir/mine": true})
	})
}

// A deletion of everything lists everything.
func TestAttackDeleteEverything(t *testing.T) {
	base := map[string]string{".git/HEAD": "ref\n", ".git/config": "\n", "a": "\n", "b/c": "\n"}
	eachWay(t, base, func(t *testing.T, s *stage) {
		s.inside(t, `find . -mindepth 1 -delete`)
		s.expect(t, "deleted .git/", "deleted .git/HEAD", "deleted .git/config", "deleted a", "deleted b/", "deleted b/c")
	})
}

// Names are handed on as the bytes they are.
func TestAttackNames(t *testing.T) {
	names := []string{".GIT", ".g\u200cit", "e\u0301", "\u00e9", "new\nline", "esc\x1b[31m", "rtl\u202e", "bad\xff\xfe", "-rf", strings.Repeat("n", 255), "back\\slash", "quote'\"", " "}
	eachWay(t, map[string]string{"keep": "\n", "gone\x1b\xff": "x\n"}, func(t *testing.T, s *stage) {
		script := "rm -- *gone*\n"
		for _, name := range names {
			script += "printf '%s' x > ./'" + strings.ReplaceAll(name, "'", `'\''`) + "'\n"
		}
		s.inside(t, script)
		want := []string{"deleted gone\x1b\xff"}
		for _, name := range names {
			want = append(want, "added "+name)
			if got := s.content(t, name); got != "x" {
				t.Errorf("%q has %q", name, got)
			}
		}
		s.expect(t, want...)
		if err := s.NoteApplied(names...); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAttackSparseFile(t *testing.T) {
	eachWay(t, map[string]string{"small": "\n"}, func(t *testing.T, s *stage) {
		s.inside(t, `truncate -s 1T huge; truncate -s 1T small`)
		s.expect(t, "added huge", "modified small")
		if c, _ := s.find(t, "huge"); c.Size != 1<<40 {
			t.Errorf("size %d", c.Size)
		}
	})
}

func TestAttackManyFiles(t *testing.T) {
	eachWay(t, map[string]string{"keep": "\n"}, func(t *testing.T, s *stage) {
		s.inside(t, `mkdir d; cd d; i=0; while [ $i -lt 300 ]; do : > $i; i=$((i+1)); done`)
		for most, want := range map[int]bool{100: false, 400: true} {
			seen := 0
			err := s.read(t.Context(), most, func(Change, error) bool { seen++; return true })
			if want != (err == nil) || !want && !errors.Is(err, errTooMany) || want && seen != 301 {
				t.Errorf("at most %d: %d changes, %v", most, seen, err)
			}
		}
	})
}

// Directories within each other end at a depth, and what lies beyond is told.
func TestAttackDepth(t *testing.T) {
	eachWay(t, map[string]string{"keep": "\n"}, func(t *testing.T, s *stage) {
		levels := "2000"
		s.inside(t, `"$HELPER" deep d `+levels+`; "$HELPER" deep long-long-long-long-long-long-name 200`)
		depth, special := 0, []string{}
		for c, err := range s.Changes(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			depth = max(depth, strings.Count(c.Path, "/")+1)
			if c.Kind == Special {
				special = append(special, c.Note)
			}
		}
		if slices.Sort(special); depth != MaxDepth+1 || len(special) != 2 || !strings.Contains(special[0], "longer than 4000") || !strings.Contains(special[1], "500 directories") {
			t.Errorf("depth %d, special %q", depth, special)
		}
		if err := s.Reconcile(t.Context()); err != nil {
			t.Errorf("Reconcile: %v", err)
		}
	})
}

// Content is compared, never times.
func TestAttackSameSizeAndTime(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `touch -r src/cart.go stamp; printf 'evil\n' > src/cart.go; touch -r stamp src/cart.go; rm stamp`)
		s.expect(t, "modified src/cart.go")
	})
}

// A host whose clock is set back makes older times; they are not those noted.
func TestAttackClockSetBack(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		at := filepath.Join(s.Base, "README.md")
		old := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
		if err := errors.Join(os.WriteFile(at, []byte("HELLO\n"), 0o644), os.Chtimes(at, old, old)); err != nil {
			t.Fatal(err)
		}
		n, err := s.loadNotes()
		if err != nil {
			t.Fatal(err)
		}
		noted, _, err := n.entry("README.md")
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			t.Fatal(err)
		}
		st.Size, st.Ino, st.Mtim = noted.Size, noted.Ino, unix.NsecToTimespec(noted.Mtime)
		st.Ctim = unix.NsecToTimespec(noted.Ctime - int64(time.Hour)) // what a clock that was set back gives
		if same, err := s.same(noted, reached{path: "README.md", st: &st}); same || err != nil {
			t.Errorf("a time before the noted one counts as begun: %v, %v", same, err)
		}
		s.begun(t, map[string]bool{"README.md": false})
	})
}

// Chains of renames and exchanges of files and directories.
func TestAttackRenameChains(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `
mv README.md b; mv b README.md
mv same tmp; mv run.sh same; mv tmp run.sh
mv swap x; mv src swap 2>/dev/null || { cp -a src swap; rm -r src; }; mv x src`)
		lines := s.lines(t)
		for _, want := range []string{"modified same", "modified run.sh", "replaced src", "replaced swap/", "deleted src/cart.go"} {
			if !strings.Contains(lines, want) {
				t.Errorf("no %q in\n%s", want, lines)
			}
		}
		if strings.Contains(lines, "README.md") {
			t.Errorf("README.md is there again:\n%s", lines)
		}
		if got := s.content(t, "swap/cart.go") + s.content(t, "src") + s.content(t, "same"); got != "cart\nfile\n#!/bin/sh\n" {
			t.Errorf("content %q", got)
		}
		s.inside(t, `mv src x; rm -rf old; mv swap old 2>/dev/null || { cp -a swap old; rm -r swap; }; rm x`)
		lines = s.lines(t)
		for _, want := range []string{"deleted old/legacy.go", "deleted src/", "deleted swap", "old/cart.go"} {
			if !strings.Contains(lines, want) {
				t.Errorf("no %q in\n%s", want, lines)
			}
		}
		if got := s.content(t, "old/cart.go"); got != "cart\n" {
			t.Errorf("old/cart.go is %q", got)
		}
	})
}

// A base whose .git is a file, as in a worktree or a submodule.
func TestAttackGitFile(t *testing.T) {
	eachWay(t, map[string]string{".git": "gitdir: /elsewhere/.git/worktrees/x\n", "a": "\n"}, func(t *testing.T, s *stage) {
		s.expect(t)
		s.inside(t, `echo 'gitdir: /tmp/evil' > .git; mkdir -p vendor/x/.git/hooks; echo x > vendor/x/.git/hooks/post-checkout`)
		s.expect(t, "modified .git", "added vendor/", "added vendor/x/", "added vendor/x/.git/", "added vendor/x/.git/hooks/", "added vendor/x/.git/hooks/post-checkout")
	})
}

// Files and directories that forbid reading are told to an ordinary user.
func TestAttackUnreadable(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `mkdir dark; echo x > dark/x; chmod 000 dark; printf 'HELLO\n' > README.md; chmod 000 README.md; chmod 000 src; touch dir/one; chmod 444 dir`)
		lines := s.lines(t)
		want := []string{"added dark/\nadded dark/x", "modified README.md"}
		if os.Geteuid() != 0 {
			want = []string{"special dark", "special README.md", "special src", "mode dir/ 755 -> 444", "special dir/one"}
		}
		for _, want := range want {
			if !strings.Contains(lines, want) {
				t.Errorf("no %q in\n%s", want, lines)
			}
		}
		if err := s.Reconcile(t.Context()); err != nil {
			t.Errorf("Reconcile: %v", err)
		}
	})
}

// A directory that is exchanged for a link all the time is never gone through.
func TestAttackExchangeWhileReading(t *testing.T) {
	eachWay(t, map[string]string{"keep": "\n"}, func(t *testing.T, s *stage) {
		outside := t.TempDir()
		fill(t, outside, map[string]string{"file": "outside\n", "sub/file": "outside\n"})
		s.inside(t, `mkdir -p d/sub; echo inside > d/file; echo inside > d/sub/file; ln -s `+outside+` l`)
		above, err := os.Open(s.above())
		if err != nil {
			t.Fatal(err)
		}
		defer above.Close()
		var exchanges atomic.Int64
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-stop:
					done <- nil
					return
				default:
				}
				if err := unix.Renameat2(int(above.Fd()), "d", int(above.Fd()), "l", unix.RENAME_EXCHANGE); err != nil {
					done <- err
					return
				}
				exchanges.Add(1)
			}
		}()
		for round := 0; round < 500 || exchanges.Load() < 500; round++ {
			for c, err := range s.Changes(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				if c.Mode.IsRegular() && c.Kind != Special && c.Size != int64(len("inside\n")) {
					t.Fatalf("read through a link: %+v", c)
				}
			}
			for _, path := range []string{"d/file", "d/sub/file"} {
				file, err := s.Open(path)
				if err != nil {
					continue
				}
				data, err := io.ReadAll(file)
				closeFile(file)
				if err != nil || string(data) != "inside\n" {
					t.Fatalf("Open(%q) read %q, %v", path, data, err)
				}
			}
		}
		close(stop)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	})
}
