package app_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

// smallDisk mounts a file system of so many MiB, in a file.
func smallDisk(t *testing.T, mount, mebibytes string) {
	t.Helper()
	need.Root(t, "it mounts a disk")
	image := filepath.Join(t.TempDir(), "image")
	script := `set -e; truncate -s "$3M" "$1"; mkfs.ext4 -q -F -m 0 "$1"; mkdir "$2"; mount -o loop "$1" "$2"`
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", image, mount, mebibytes).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(mount, unix.MNT_DETACH) })
}

func freeOn(t *testing.T, dir string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Bavail) * st.Bsize
}

// Code inside that writes as fast as it can, in as many files as it can, on a
// real disk: the reserve is out of its reach, Atoll goes on working, and the next
// sandbox is refused until something is removed.
func TestReserveIsOutOfReach(t *testing.T) {
	need.Root(t, "it mounts a disk")
	s := newSite(t)
	smallDisk(t, s.state, "900")
	s.set("agents.defaults.sandbox.backend", "linux")
	s.set("agents.defaults.sandbox.docker.image", "host")
	a := s.open()
	in := s.provide(a, session("filling"))
	discardLater(t, a, in)
	reserve := filepath.Join(s.state, "reserve")
	var st unix.Stat_t
	if err := unix.Stat(reserve, &st); err != nil || st.Blocks*512 < provide.DiskReserve {
		t.Fatalf("the reserve takes %d bytes of the disk: %v", st.Blocks*512, err)
	}
	const writer = `for w in 1 2 3 4; do (i=0; while [ $i -lt 400 ]; do i=$((i+1)); head -c 4194304 /dev/zero >/workspace/fill-$w-$i; done) & done; wait`
	result, err := in.Exec(t.Context(), &machine.Command{Argv: []string{"/bin/sh", "-c", writer}, EndTree: true})
	if err == nil && result.QuotaExceeded == "" {
		t.Errorf("nothing ended it: %+v", result)
	}
	if _, err := a.Provide(t.Context(), session("next"), provide.Options{}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("the next sandbox: %v, want a refusal for the disk", err)
	}
	if free := freeOn(t, s.state); free < provide.DiskReserve {
		t.Errorf("%d MiB are left of the disk, want %d", free>>20, provide.DiskReserve>>20)
	}
	if err := exec.CommandContext(t.Context(), "sh", "-c", "rm -rf "+s.state+"/sandboxes/*/fill-*").Run(); err != nil {
		t.Fatal(err)
	}
	discardLater(t, a, s.provide(a, session("next")))
	if err := unix.Stat(reserve, &st); err != nil || st.Blocks*512 < provide.DiskReserve {
		t.Errorf("the reserve was not allocated again: %v", err)
	}
}
