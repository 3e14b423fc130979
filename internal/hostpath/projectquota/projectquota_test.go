package projectquota

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// mounted makes an ext4 file system with project quotas and returns its root.
func mounted(t *testing.T) (string, error) {
	t.Helper()
	need.Root(t, "mounts a file system")
	dir := filepath.Join(t.TempDir(), "mount")
	image := dir + ".img"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"truncate", "-s", "64M", image}, {"mkfs.ext4", "-q", "-O", "project,quota", image}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", argv, err, out)
		}
	}
	if err := exec.CommandContext(t.Context(), "mount", "-o", "loop,prjquota", image, dir).Run(); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, nil
}

func openDir(t *testing.T, path string) *os.File {
	t.Helper()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir
}

// A file system without project quotas is told from a failure, and stays as it is.
func TestWithoutQuotas(t *testing.T) {
	dir := openDir(t, t.TempDir())
	if err := Apply(dir, Limits{Bytes: 1 << 20, Files: 10}); !errors.Is(err, ErrUnsupported) {
		t.Fatalf("Apply: %v", err)
	}
	var a attributes
	if err := attributesCall(dir, getAttributes, &a); err == nil && a.project != 0 {
		t.Errorf("project %d is set", a.project)
	}
}

// The limits hold against a call that takes everything at once. Kernels without
// CONFIG_QFMT_V2 cannot mount such a file system, and then Apply must refuse it.
func TestLimitsHold(t *testing.T) {
	root, err := mounted(t)
	if err != nil {
		t.Logf("this kernel cannot mount ext4 with project quotas: %v", err)
		return
	}
	path := filepath.Join(root, "tree")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Apply(openDir(t, path), Limits{Bytes: 1 << 20, Files: 10}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(path, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	var a attributes
	if err := attributesCall(openDir(t, filepath.Join(path, "below")), getAttributes, &a); err != nil || a.project < firstProject || a.flags&inheritProject == 0 {
		t.Errorf("a directory below has %+v, %v", a, err)
	}
	f, err := os.Create(filepath.Join(path, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, 8<<20); !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("8 MiB of 1: %v", err)
	}
	for i := range 20 {
		if err = os.Mkdir(filepath.Join(path, string(rune('a'+i))), 0o755); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.EDQUOT) {
		t.Errorf("20 directories of 10: %v", err)
	}
}
