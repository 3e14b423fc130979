package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// exact describes everything of a tree: types, modes, owners, times, contents and
// extended attributes.
func (s *site) exact(side string) string {
	s.t.Helper()
	var b strings.Builder
	s.must(filepath.WalkDir(s.path(side, ""), func(path string, d fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err := errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return err
		}
		rel, _ := filepath.Rel(s.path(side, ""), path)
		fmt.Fprintf(&b, "%s %o %d:%d", rel, st.Mode, st.Uid, st.Gid)
		if !d.IsDir() {
			fmt.Fprintf(&b, " %d", st.Mtim.Nano())
		}
		names := make([]byte, 4096)
		n, _ := unix.Llistxattr(path, names)
		for name := range strings.SplitSeq(strings.TrimRight(string(names[:max(n, 0)]), "\x00"), "\x00") {
			value := make([]byte, 4096)
			size, _ := unix.Lgetxattr(path, name, value)
			fmt.Fprintf(&b, " %s=%q", name, value[:max(size, 0)])
		}
		if data, err := os.ReadFile(path); err == nil {
			fmt.Fprintf(&b, " %q", data)
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

// TestInvariant_SYNC_ONLY_WAY_BACK changes everything inside, collects, rejects and
// is refused: the base is the same, to the last attribute, until an approval.
func TestInvariant_SYNC_ONLY_WAY_BACK(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		before := s.exact("base")
		s.inside(everyKind + `
chmod 700 src; touch -d 2001-01-01 README.md; ln -s /etc/passwd out; mkfifo pipe; ln a.txt again; rm b.txt
mkdir -p .git/hooks; echo x > .git/hooks/pre-commit`)
		g := s.open()
		set := s.collect(g)
		if _, err := g.Reject([]string{"src/cart.go"}, "me"); err != nil {
			t.Error(err)
		}
		for _, e := range set.Entries {
			if _, err := g.Diff(e.Path); err != nil && e.Path != "src/cart.go" {
				t.Errorf("diff of %s: %v", e.Path, err)
			}
			if e.Verdict != Pass {
				if _, err := g.Approve(t.Context(), []Choice{{e.Path, e.SHA256}}, Decision{By: "me"}); !errors.Is(err, ErrNotAllowed) {
					t.Errorf("approval of %s: %v", e.Path, err)
				}
			}
		}
		if now := s.exact("base"); now != before {
			t.Errorf("the base has\n%s\nwant\n%s", now, before)
		}
		_, err := g.Approve(t.Context(), []Choice{{"src/cart_test.go", set.find("src/cart_test.go").SHA256}}, Decision{By: "me"})
		if now := s.exact("base"); err != nil || now == before {
			t.Errorf("the approval changed nothing: %v", err)
		}
	})
}

// TestInvariant_SYNC_APPLIES_WHAT_WAS_SEEN changes files after they were shown: what
// is applied has the hash that was shown.
func TestInvariant_SYNC_APPLIES_WHAT_WAS_SEEN(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		s.inside(`echo seen > a.txt; echo seen > new.txt`)
		g := s.open()
		set := s.collect(g)
		s.inside(`echo unseen > a.txt; rm new.txt; ln -s /etc/passwd new.txt`)
		if _, err := g.Approve(t.Context(), []Choice{{"a.txt", sumOf([]byte("unseen\n"))}}, Decision{By: "me"}); !errors.Is(err, ErrOtherHash) {
			t.Errorf("another hash: %v", err)
		}
		_, err := g.Approve(t.Context(), passing(set), Decision{By: "me"})
		s.must(err)
		for _, path := range []string{"a.txt", "new.txt"} {
			if data, err := os.ReadFile(s.path("base", path)); string(data) != "seen\n" || err != nil {
				t.Errorf("%s has %q, %v", path, data, err)
			}
		}
		if got := verdicts(s.collect(g)); got != "modified a.txt pass\nreplaced new.txt blocked symlink replaced" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// TestInvariant_SYNC_NEVER_OVER_UNSEEN lets the host change what the agent changed
// too, in every order: nothing of the host is written over.
func TestInvariant_SYNC_NEVER_OVER_UNSEEN(t *testing.T) {
	host := map[string]func(s *site){
		"saved in place": func(s *site) { s.write("base", "a.txt", "host\n") },
		"saved by rename": func(s *site) {
			s.write("base", "x", "host\n")
			s.must(os.Rename(s.path("base", "x"), s.path("base", "a.txt")))
		},
		"same size and times": func(s *site) { s.sameTimes("a.txt", "h\n") },
		"made a link":         func(s *site) { s.remove("base", "a.txt"); s.write("base", "a.txt", "-> b.txt") },
		"made a directory":    func(s *site) { s.remove("base", "a.txt"); s.write("base", "a.txt/x", "host\n") },
		"removed":             func(s *site) { s.remove("base", "a.txt") },
		"made executable":     func(s *site) { s.must(os.Chmod(s.path("base", "a.txt"), 0o755)) },
		"made the new file":   func(s *site) { s.write("base", "new.txt", "host\n") },
		"exchanged src": func(s *site) {
			s.must(os.Rename(s.path("base", "src"), s.path("base", "src2")))
			s.write("base", "src/cart.go", "cart\n")
		},
		"put in old": func(s *site) { s.write("base", "old/host", "host\n") },
	}
	for name, change := range host {
		for _, before := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, before the review %v", name, before), func(t *testing.T) {
				s := newSite(t, project())
				s.inside(`echo agent > a.txt; echo agent > new.txt; echo agent >> src/cart.go; rm -r old`)
				if before {
					change(s)
				}
				g := s.open()
				set := s.collect(g)
				if !before {
					change(s)
				} else if set.Count(Conflict) == 0 {
					t.Fatalf("no conflict: %s", verdicts(set))
				}
				seen := s.exact("base")
				var choices []Choice
				for _, e := range set.Entries {
					choices = append(choices, Choice{e.Path, e.SHA256})
				}
				_, err := g.Approve(t.Context(), choices, Decision{By: "me", ConfirmDeletions: true})
				_, conflict := errors.AsType[*ConflictError](err)
				if name == "put in old" && !before { // it was not among what was shown
					if data, err := os.ReadFile(s.path("base", "old/host")); string(data) != "host\n" || err != nil {
						t.Errorf("the host's file is gone: %v", err)
					}
				} else if now := s.exact("base"); !conflict || now != seen {
					t.Errorf("approval: %v\n%s\nwas\n%s", err, now, seen)
				}
			})
		}
	}
}

// sameTimes writes a file so that only its bytes show it.
func (s *site) sameTimes(rel, text string) {
	s.t.Helper()
	info, err := os.Stat(s.path("base", rel))
	s.must(err)
	s.must(os.WriteFile(s.path("base", rel), []byte(text), 0o644))
	s.must(os.Chtimes(s.path("base", rel), time.Time{}, info.ModTime()))
}

// swapDelays is how many moments of an approval the host's file is exchanged at, 20
// microseconds apart.
const swapDelays = 250

// TestSwapper exchanges the host's file while it is being applied: the host's newer
// file has the name in the end, always.
func TestSwapper(t *testing.T) {
	s := newSite(t, project())
	s.inside(`echo agent > a.txt`)
	g := s.open()
	set := s.collect(g)
	applied, refused := 0, 0
	for round := range rounds(t, "ATOLL_GATE_SWAPS", need.Rounds(25, 500)) {
		s.write("base", "fresh", "begun\n")
		s.must(os.Rename(s.path("base", "fresh"), s.path("base", "a.txt")))
		s.must(s.source.NoteApplied("a.txt"))
		s.must(g.writeJSON(setName, set))
		want := fmt.Sprintf("host %d\n", round)
		s.write("base", "fresh", want)
		done := make(chan error)
		go func() {
			time.Sleep(time.Duration(round%swapDelays*20) * time.Microsecond)
			done <- os.Rename(s.path("base", "fresh"), s.path("base", "a.txt"))
		}()
		_, err := g.Approve(t.Context(), passing(set), Decision{By: "me"})
		s.must(<-done)
		if _, conflict := errors.AsType[*ConflictError](err); conflict {
			refused++
		} else if s.must(err); err == nil {
			applied++
		}
		if data, err := os.ReadFile(s.path("base", "a.txt")); string(data) != want || err != nil {
			t.Fatalf("round %d: the base has %q, %v; approval %v", round, data, err, err)
		}
	}
	t.Logf("%d applied, %d refused", applied, refused)
}

// TestInvariant_SYNC_UNDO_EXACT puts back files with owners, modes, times and
// attributes, and nothing that the host changed since.
func TestInvariant_SYNC_UNDO_EXACT(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		s.must(os.Chmod(s.path("base", "a.txt"), 0o640))
		s.must(os.Chtimes(s.path("base", "a.txt"), time.Time{}, time.Unix(1_000_000_000, 12345)))
		s.must(unix.Setxattr(s.path("base", "a.txt"), "user.note", []byte("mine"), 0))
		s.must(s.source.NoteApplied("a.txt"))
		before := s.exact("base")
		s.inside(`echo agent > a.txt; rm b.txt; echo x > new.txt; mkdir d; echo y > d/e; ln -sfn a.txt link; rm -r old`)
		g := s.open()
		applied := s.approveAll(g, s.collect(g))
		if info, err := os.Stat(s.path("base", "a.txt")); err != nil || info.Mode() != 0o640 {
			t.Errorf("applying changed the mode: %v, %v", info.Mode(), err)
		}
		s.write("base", "new.txt", "the host's\n")
		seen := s.exact("base")
		_, err := g.Undo(t.Context(), applied.ID, "me")
		if conflict, ok := errors.AsType[*ConflictError](err); !ok || len(conflict.Paths) != 1 || conflict.Paths[0] != "new.txt" || s.exact("base") != seen {
			t.Errorf("undo over a newer file: %v", err)
		}
		s.write("base", "new.txt", "x\n")
		_, err = g.Undo(t.Context(), applied.ID, "me")
		s.must(err)
		if now := s.exact("base"); withoutLinkTimes(now) != withoutLinkTimes(before) {
			t.Errorf("the base has\n%s\nwant\n%s", now, before)
		}
	})
}

// withoutLinkTimes leaves out the times of links, which are not put back.
func withoutLinkTimes(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasPrefix(fields[1], "120") {
			lines[i] = strings.Join(append(fields[:3:3], fields[4:]...), " ")
		}
	}
	return strings.Join(lines, "\n")
}

// TestInvariant_SYNC_NO_PRIVILEGES: no bit, capability, attribute or owner of the
// sandbox arrives.
func TestInvariant_SYNC_NO_PRIVILEGES(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *site) {
		script := `
for f in suid sgid sticky; do echo x > $f; done
chmod 4755 suid; chmod 2755 sgid; chmod 1644 sticky; chmod 6777 a.txt; chmod 4755 run.sh; mkdir -m 3777 box; echo x > box/in
echo x > attr; $HELPER xattr attr user.evil 1`
		if s.way.name != "user" && os.Geteuid() == 0 {
			script += "\nchown 65534:65534 attr\n"
		}
		s.inside(script)
		if os.Geteuid() == 0 && s.way.name == "copy" {
			capability := "\x01\x00\x00\x02\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00"
			s.must(unix.Setxattr(s.path("tree", "attr"), "security.capability", []byte(capability), 0))
		}
		g := s.open()
		set := s.collect(g)
		for _, path := range []string{"suid", "sgid", "sticky", "a.txt", "run.sh"} {
			if e := set.find(path); e == nil || e.Verdict != Approval {
				t.Errorf("%s: %+v", path, e)
			}
		}
		s.approveAll(g, set)
		for path, want := range map[string]uint32{"suid": 0o755, "sgid": 0o755, "sticky": 0o644, "a.txt": 0o755, "run.sh": 0o755, "box": 0o755, "box/in": 0o644, "attr": 0o644} {
			var st, dir unix.Stat_t
			s.must(errors.Join(unix.Lstat(s.path("base", path), &st), unix.Lstat(s.path("base", ""), &dir)))
			if st.Mode&0o7777 != want || st.Uid != dir.Uid || st.Gid != dir.Gid {
				t.Errorf("%s has mode %o and owner %d:%d", path, st.Mode, st.Uid, st.Gid)
			}
			if n, err := unix.Llistxattr(s.path("base", path), nil); n != 0 && err == nil {
				t.Errorf("%s has %d bytes of attributes", path, n)
			}
		}
	})
}

// TestInvariant_SYNC_NO_PRIVILEGES_OF_FILES: file capabilities, also those of a user
// namespace, and access control lists are said and do not arrive.
func TestInvariant_SYNC_NO_PRIVILEGES_OF_FILES(t *testing.T) {
	const (
		everything = "ffffffff00000000ffffffff00000000"
		version2   = "01000002" + everything              // in a user namespace the kernel makes version 3 of it
		version3   = "01000003" + everything + "e8030000" // of user 1000
		list       = "02000000" + "01000600ffffffff" + "0200060000000000" + "04000400ffffffff" + "10000600ffffffff" + "20000400ffffffff"
	)
	eachWay(t, project(), func(t *testing.T, s *site) {
		set, capability := "$HELPER", version3
		if s.way.name == "user" || os.Geteuid() != 0 {
			capability = version2
		}
		if s.way.name == "copy" && os.Geteuid() != 0 {
			set = "unshare --user --map-root-user $HELPER"
		}
		s.inside(fmt.Sprintf(`echo x > caps; %s hexattr caps security.capability %s
echo x >> a.txt; %s hexattr a.txt system.posix_acl_access %s`, set, capability, set, list))
		g := s.open()
		found := s.collect(g)
		for path, what := range map[string]string{"caps": "file capabilities", "a.txt": "access control list"} {
			if e := found.find(path); e == nil || e.Verdict != Approval || len(e.Reasons) != 1 || !strings.Contains(e.Reasons[0].Detail, what) {
				t.Errorf("%s: %+v", path, e)
			}
		}
		s.approveAll(g, found)
		for _, path := range []string{"caps", "a.txt"} {
			var st unix.Stat_t
			s.must(unix.Lstat(s.path("base", path), &st))
			if n, err := unix.Llistxattr(s.path("base", path), nil); n != 0 && err == nil || st.Mode&0o7777 != 0o644 {
				t.Errorf("%s has %d bytes of attributes and mode %o", path, n, st.Mode)
			}
		}
	})
}

// TestInvariant_HIDDEN_IS_COUNTED: what is not listed is counted.
func TestInvariant_HIDDEN_IS_COUNTED(t *testing.T) {
	files := project()
	files[".gitignore"] = "node_modules/\n*.log\n"
	eachWay(t, files, func(t *testing.T, s *site) {
		s.opt.Ignore = []string{"cache/**"}
		s.opt.Limits.Files = 20
		s.inside(`
mkdir -p node_modules/a cache .git/objects alpha/.git many
for i in 1 2 3; do echo $i > node_modules/a/$i; echo $i > cache/$i; echo $i > .git/objects/$i; echo $i > $i.log; done
echo x > alpha/.git/config; chmod 600 b.txt
for i in $(seq 30); do echo $i > many/$i; done
rm a.txt; echo '*' > .gitignore`)
		g := s.open()
		set := s.collect(g)
		changes, listed := 0, len(set.Entries)
		for change, err := range s.source.Changes(t.Context()) {
			s.must(err)
			if change.Path == "many" || change.Path == "alpha" { // made with what is in them
				continue
			}
			changes++
		}
		groups := map[string]int{}
		for _, group := range set.Withheld {
			groups[group.Name] = group.Files
			listed += group.Files
		}
		if listed != changes {
			t.Errorf("%d are listed or counted, of %d: %+v", listed, changes, set.Withheld)
		}
		for name, files := range map[string]int{"node_modules/": 5, "*.log": 3, "cache/**": 4, ".git": 7, withheldMode: 1} {
			if groups[name] != files {
				t.Errorf("%q: %d, want %d", name, groups[name], files)
			}
		}
		if set.Entries[0].Kind != overlay.Deleted || groups[withheldLimit] == 0 {
			t.Errorf("%+v", set.Withheld)
		}
		if _, err := g.Reject([]string{".gitignore"}, "me"); err != nil {
			t.Error(err)
		}
		if last, err := g.Last(); err != nil || len(last.Entries) != len(set.Entries)-1 || last.Withheld[len(last.Withheld)-1] != (Group{withheldRejected, 1}) {
			t.Errorf("after a rejection: %+v, %v", last.Withheld, err)
		}
	})
}
