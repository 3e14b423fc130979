package follow_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

// An editor that keeps a backup renames the file to it, writes another one and removes
// the backup, as vim does; it also tries whether it can make files.
func TestBackupSaves(t *testing.T) {
	eachKind(t, func(s *stage) {
		s.wants("one", "1\n")
		for round := range 3 {
			text := fmt.Sprintf("saved %d\n", round)
			probe, file, backup := filepath.Join(s.base, "4913"), filepath.Join(s.base, "one"), filepath.Join(s.base, "one~")
			mustDo(t, os.WriteFile(probe, nil, 0o644))
			mustDo(t, os.Remove(probe))
			mustDo(t, os.Rename(file, backup))
			mustDo(t, os.WriteFile(file, []byte(text), 0o644))
			mustDo(t, os.Chown(file, guestUser, guestUser))
			mustDo(t, os.Remove(backup))
			s.wants("one", text)
		}
		s.wantsChanges("")
	})
}

// A branch that git checks out on the host is what the agent sees, file by file.
func TestGitCheckoutOnTheHost(t *testing.T) {
	const files = 500
	eachKind(t, func(s *stage) {
		s.agent("mine", "agent\n")
		git := func(script string) {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), "sh", "-ec", "umask 022\n"+script)
			cmd.Dir = s.base
			cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@localhost", "GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@localhost", "HOME=/nonexistent")
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: guestUser, Gid: guestUser}} // the files are the guest's user's
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		git(fmt.Sprintf(`git init -q -b main .; for i in $(seq %d); do echo main $i >f$i; done; git add -A; git commit -qm one
git switch -qc other; for i in $(seq %d); do echo other $i >f$i; done; rm f1; mkdir more; echo new >more/new; git add -A; git commit -qm two; git switch -q main`, files, files))
		s.wants(fmt.Sprintf("f%d", files), fmt.Sprintf("main %d\n", files))
		git("git switch -q other")
		for i := 2; i <= files; i++ {
			s.wants(fmt.Sprintf("f%d", i), fmt.Sprintf("other %d\n", i))
		}
		s.wants("f1", "")
		s.wants("more/new", "new\n")
		git("git switch -q main")
		s.wants("f1", "main 1\n")
		s.wants("more/new", "")
		s.wants(fmt.Sprintf("f%d", files), fmt.Sprintf("main %d\n", files))
		s.wants("mine", "agent\n")
	})
}

// TestWatchersInsideSeeHostEdits saves a file on the host, by rename and in place: an
// inotify watch inside, such as that of a development server, gets an event for each.
func TestWatchersInsideSeeHostEdits(t *testing.T) {
	eachKind(t, func(s *stage) {
		watch, err := s.insideFiles.Watch(t.Context(), filepath.Join(s.dir, "src"), &guestfs.WatchOptions{Recursive: true})
		mustDo(t, err)
		defer watch.Close()
		s.host("src/two", "saved by rename\n")
		told(t, watch, "two")
		s.wants("src/two", "saved by rename\n")
		mustDo(t, os.WriteFile(filepath.Join(s.base, "src", "two"), []byte("saved in place\n"), 0o644))
		told(t, watch, "two")
		s.wants("src/two", "saved in place\n")
	})
}

// TestWatchersInsideSeeSavesInPlace saves a file of the base in place that the upper
// directory has no copy of: the inotify watch inside gets an event.
func TestWatchersInsideSeeSavesInPlace(t *testing.T) {
	eachKind(t, func(s *stage) {
		watch, err := s.insideFiles.Watch(t.Context(), filepath.Join(s.dir, "src"), nil)
		mustDo(t, err)
		defer watch.Close()
		mustDo(t, os.WriteFile(filepath.Join(s.base, "src", "two"), []byte("saved in place\n"), 0o644))
		told(t, watch, "two")
		s.wants("src/two", "saved in place\n")
		s.wantsChanges("")
	})
}

// told waits until a watcher reports a path.
func told(t *testing.T, watch *guestfs.Watcher, path string) {
	t.Helper()
	timer := time.AfterFunc(time.Minute, func() { _ = watch.Close() })
	defer timer.Stop()
	for {
		events, err := watch.Next()
		if err != nil {
			t.Fatalf("%s was not told: %v", path, err)
		}
		for _, event := range events {
			if event.Path == path {
				return
			}
		}
	}
}
