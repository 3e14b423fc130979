package sandboxtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

var overlayCases = []testCase{
	{"OVERLAY_HOST_UNTOUCHED", func(s *stage) {
		spec := s.overlaySpec()
		if spec == nil {
			return // refused by a gap
		}
		base := spec.Mounts[0].Source
		before := Fingerprint(s.t, base)
		inst := s.started(spec)
		s.sh(s.wire(inst), "cd "+spec.Workdir+" && "+overlayChanges)
		if err := inst.Stop(s.t.Context(), 2*time.Second); err != nil {
			s.t.Fatal(err)
		}
		if tree, err := overlay.Load(spec.Mounts[0].Overlay.Dir); err != nil || tree.Volatile != tree.Settled {
			s.t.Errorf("the changes were not brought to disk: %+v, %v", tree, err)
		}
		if err := inst.Start(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
		if got := s.sh(s.wire(inst), "cd "+spec.Workdir+" && cat a.txt dir/* && ls -A"); got != "old\nnew\nagain\nmade anew\na.txt\nb.txt\ndir\nlink" {
			s.t.Errorf("the changes are not there after a restart: %q", got)
		}
		if after := Fingerprint(s.t, base); after != before {
			s.t.Errorf("the base is\n%s\nwas\n%s", after, before)
		}
	}},
}

// overlayChanges changes the workspace in the ways that any user can.
const overlayChanges = `echo new >>a.txt && echo again >>a.txt && rm -r dir && mkdir dir && echo made anew >dir/x && chmod 755 dir/x &&
	touch -d 2001-01-01 dir/x && rm gone.txt && mv from.txt b.txt && ln -sf elsewhere link`

// overlaySpec is a spec with an overlay on its workspace, of the first kind that
// the runtime can mount; nil if there is none, and it refuses them as it must.
func (s *stage) overlaySpec() *sandbox.Spec {
	s.t.Helper()
	spec := s.spec()
	mount := &spec.Mounts[0]
	fillBase(s.t, mount.Source)
	for _, kind := range []overlay.KernelMount{
		{Marks: overlay.MarksTrusted, Volatile: true}, {Marks: overlay.MarksUser, Volatile: true}, {Marks: overlay.MarksTrusted},
	} {
		mount.Overlay = &sandbox.OverlayMount{Dir: filepath.Join(s.state, "overlay/scope/0"), Marks: kind.Marks, Volatile: kind.Volatile}
		if len(s.runtime.Check(s.t.Context(), spec)) > 0 {
			continue
		}
		if _, err := overlay.Prepare(s.t.Context(), overlay.Request{
			State: filepath.Join(s.state, "overlay"), Dir: mount.Overlay.Dir, Base: mount.Source, Target: mount.Target, Want: overlay.Kernel, Kernel: kind,
		}); err != nil {
			s.t.Fatal(err)
		}
		return spec
	}
	s.wantRefused(spec, "overlay.kind")
	return nil
}

func fillBase(t *testing.T, base string) {
	t.Helper()
	mustMkdir(t, filepath.Join(base, "dir"))
	for _, name := range []string{"a.txt", "gone.txt", "from.txt", "dir/in.txt"} {
		path := filepath.Join(base, name)
		if err := os.WriteFile(path, []byte("old\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.txt", filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(filepath.Join(base, "a.txt"), "user.note", []byte("kept"), 0); err != nil {
		t.Fatal(err)
	}
}

// Fingerprint is everything of a directory that a change of the host would show:
// names, modes, owners, times, extended attributes and bytes.
func Fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		content, _ := os.ReadFile(path)
		if entry.Type() == fs.ModeSymlink {
			text, _ := os.Readlink(path)
			content = []byte(text)
		}
		names := make([]byte, 4096)
		n, _ := unix.Llistxattr(path, names)
		lines = append(lines, fmt.Sprintf("%s %o %d:%d %d %d %d %q %x", path, st.Mode, st.Uid, st.Gid, st.Ino,
			st.Mtim.Nano(), st.Ctim.Nano(), names[:max(n, 0)], content))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
