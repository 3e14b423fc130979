package session_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/gateway/session"
	"github.com/atoll-run/atoll/internal/store"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// smallDisk mounts a file system of 16 MiB in a file.
func smallDisk(t *testing.T) string {
	t.Helper()
	need.Root(t, "it mounts a disk")
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, argv := range [][]string{{"truncate", "-s", "16M", image}, {"mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s (needs root and e2fsprogs)", argv, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all that is free on a file's disk.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 16, 1 << 10, 1} {
		for err = nil; err == nil; _, err = f.Write(make([]byte, size)) {
			continue
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// Tasks that were accepted before the disk was full are carried out when there is
// space again, each once and in their order; what comes meanwhile is refused.
func TestFullDisk(t *testing.T) {
	dir := smallDisk(t)
	d := openAt(t, filepath.Join(dir, "atoll.db"), session.Limits{})
	d.ask(ann, "agent:main:main", "first", "wait a")
	d.ask(bob, "agent:main:main", "bob's", "wait b")
	d.began(2)
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	accepted, err := []string{"first"}, error(nil)
	for i := 0; err == nil && i < 30; i++ { // the log of the database has some space of its own
		id := fmt.Sprint("more", i)
		if _, _, err = d.Submit(t.Context(), ann, session.Task{ID: id, Key: "agent:main:main", Message: "say " + strings.Repeat("x", 300<<10)}); err == nil {
			accepted = append(accepted, id)
		}
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatalf("a full disk: %v after %d tasks", err, len(accepted))
	}
	fill(t, filler)
	d.letGo("a")
	d.letGo("b")
	if rec := d.over(bob, "bob's"); rec.State != session.Done {
		t.Errorf("%+v", rec) // it is known, whether it is written down or not
	}
	d.until("a write is tried again", func() bool { return d.Stats().Unsaved > 0 })
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for _, id := range accepted {
		if rec := d.over(ann, id); rec.State != session.Done {
			t.Errorf("%s is %s: %s", id, rec.State, rec.Problem)
		}
	}
	d.until("everything is written down", func() bool { return d.Stats() == session.Stats{} })
	d.ask(ann, "agent:main:main", "last", "say last")
	d.over(ann, "last")
	var begun []string
	for _, job := range d.seen() {
		if job.Account == "ann" {
			begun = append(begun, job.ID)
		}
	}
	if want := append(accepted, "last"); !slices.Equal(begun, want) {
		t.Errorf("begun: %v\nwant:  %v", begun, want)
	}
	for _, view := range []session.View{ann, bob} {
		list, err := d.Tasks(t.Context(), view, "agent:main:main", 0)
		if err != nil || slices.ContainsFunc(list, func(r *session.Record) bool { return r.State != session.Done }) {
			t.Errorf("written down: %+v, %v", list, err)
		}
	}
}

// A task that waits for the disk can be aborted, and does not keep the service from
// ending.
func TestAbortOnAFullDisk(t *testing.T) {
	dir := smallDisk(t)
	d := openAt(t, filepath.Join(dir, "atoll.db"), session.Limits{})
	d.ask(ann, "agent:main:main", "first", "wait a")
	d.began(1)
	filler := filepath.Join(dir, "filler")
	fill(t, filler)
	for i := 0; ; i++ {
		if _, _, err := d.Submit(t.Context(), ann, session.Task{ID: fmt.Sprint("more", i), Key: "agent:main:main", Message: strings.Repeat("x", 300<<10)}); err != nil {
			break
		}
	}
	fill(t, filler)
	if _, err := d.Abort(t.Context(), ann, "agent:main:main", ""); err != nil {
		t.Fatal(err)
	}
	if rec := d.over(ann, "first"); rec.State != session.Aborted {
		t.Errorf("%+v", rec)
	}
	d.Close()
}
