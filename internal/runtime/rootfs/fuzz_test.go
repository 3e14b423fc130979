package rootfs

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzUnpack unpacks anything, and looks whether it stayed where it belongs.
func FuzzUnpack(f *testing.F) {
	for _, attack := range attacks(f) {
		f.Add(attack.data)
	}
	base, upper := twoLayers(f)
	f.Add(base)
	f.Add(upper)
	f.Add(pack(f, tarDir("d"), tarLink("d/l", "x"), tarHard("h", "d/l"), tarFile("d/.wh..wh..opq", ""), tarFile(".wh.gone", ""), tarKind("p", '6')))
	limits := Limits{Size: 1 << 16, Files: 50, Depth: 10, Name: 512}
	f.Fuzz(func(t *testing.T, data []byte) {
		outside := t.TempDir()
		dir := filepath.Join(outside, "fs")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		layer, err := unpackInto(t.Context(), data, dir, limits)
		if err == nil && (layer.Size > limits.Size || layer.Files > limits.Files) {
			t.Errorf("layer = %+v", layer)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
			t.Errorf("outside are %v, %v", entries, err)
		}
		checkTree(t, dir, limits)
	})
}

// checkTree looks for anything that must not come out of an archive.
func checkTree(t *testing.T, dir string, limits Limits) {
	var bytes int64
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		switch {
		case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
			t.Errorf("%q has mode %v", path, info.Mode())
		case info.Mode()&fs.ModeDevice != 0 && (info.Mode()&fs.ModeCharDevice == 0 || st.Rdev != 0):
			t.Errorf("%q is a device", path)
		case int(st.Uid) != os.Geteuid():
			t.Errorf("%q belongs to %d", path, st.Uid)
		case info.Mode().IsRegular() && st.Nlink == 1:
			bytes += info.Size()
		}
		for _, name := range []string{"user.overlay.redirect", "user.overlay.metacopy", "trusted.overlay.redirect", "security.capability"} {
			if _, err := unix.Lgetxattr(path, name, nil); err == nil {
				t.Errorf("%q has the attribute %s", path, name)
			}
		}
		return nil
	})
	if err != nil || bytes > limits.Size {
		t.Errorf("%d bytes, %v", bytes, err)
	}
}
