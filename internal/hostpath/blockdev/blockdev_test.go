package blockdev

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// madeUp is a sysfs in which the device of a file of ours is the second part of
// a disk.
func madeUp(t *testing.T) (f Finder, file string) {
	t.Helper()
	dir := t.TempDir()
	file = filepath.Join(dir, "file")
	disk := filepath.Join(dir, "devices/cciss!c0d0")
	for name, text := range map[string]string{
		file: "", disk + "/dev": "104:0\n", disk + "/queue/scheduler": "none [bfq]\n", disk + "/c0d0p2/dev": "104:2\n", disk + "/c0d0p2/partition": "2\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		t.Fatal(err)
	}
	f = Finder{Sys: dir}
	own := f.dir(unix.Major(st.Dev), unix.Minor(st.Dev))
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{own: disk + "/c0d0p2", f.dir(104, 0): disk} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	return f, file
}

func TestAPartIsOnItsDisk(t *testing.T) {
	f, file := madeUp(t)
	disks, err := f.All([]string{file}, []string{filepath.Dir(file), "/proc"})
	if err != nil || len(disks) != 1 {
		t.Fatalf("%v, %v", disks, err)
	}
	if d := disks[0]; d.String() != "104:0" || d.Path() != "/dev/cciss/c0d0" || f.Scheduler(d) != "bfq" {
		t.Errorf("%+v, %s, %q", d, d.Path(), f.Scheduler(d))
	}
}

func TestMemoryIsNoDisk(t *testing.T) {
	for _, path := range []string{"/dev/shm", "/proc"} {
		if d, err := (Finder{}).Of(path); !errors.Is(err, ErrNone) {
			t.Errorf("%s: %v, %v", path, d, err)
		}
	}
	if _, err := (Finder{}).All([]string{"/proc"}, nil); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, err := (Finder{}).Of("/no/such/file"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
