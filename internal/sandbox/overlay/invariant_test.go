package overlay

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInvariant_UPPER_IS_THE_KERNELS calls everything that may be called while a
// sandbox runs. What it writes to is as the sandbox left it, to the time of the
// last change of every inode.
func TestInvariant_UPPER_IS_THE_KERNELS(t *testing.T) {
	eachWay(t, project(), func(t *testing.T, s *stage) {
		s.inside(t, `echo more >> README.md; touch same; rm -r old; mkdir -p new/sub; echo n > new/sub/n; ln -s /etc link2; mkfifo pipe; chmod 444 dir`)
		before := inodes(t, s.Dir)
		again, err := Prepare(t.Context(), s.request)
		if err != nil {
			t.Fatal(err)
		}
		s.Tree = again
		_ = s.lines(t)
		_ = s.content(t, "new/sub/n")
		fill(t, s.Base, map[string]string{"README.md": "hello\nmore\n", "src/cart.go": "saved\n"})
		s.begun(t, map[string]bool{"README.md": false, "new/sub/n": true})
		_, changed := s.HostChanged(t.Context(), 10)
		if err := errors.Join(changed, s.NoteApplied("README.md", "src/cart.go", "old"), AfterStop(s.Dir)); err != nil {
			t.Fatal(err)
		}
		if after := inodes(t, s.Dir); after != before {
			t.Errorf("is\n%s\nwas\n%s", after, before)
		}
	})
}

// inodes lists what the kernel or a sandbox writes to in the directory of an
// overlay. The kernel's own directory in work has no permissions.
func inodes(t *testing.T, dir string) (text string) {
	t.Helper()
	for _, part := range []string{"upper", "work", "tree"} {
		_ = filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, _ error) error {
			var st unix.Stat_t
			if d == nil || unix.Lstat(path, &st) != nil {
				return nil
			}
			text += fmt.Sprintf("%s %o %d %d %d %v %v\n", path, st.Mode, st.Ino, st.Size, st.Nlink, st.Mtim, st.Ctim)
			return nil
		})
	}
	if text == "" {
		t.Fatal("there is nothing")
	}
	return text
}
