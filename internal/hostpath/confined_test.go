package hostpath

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The two ways of a confined open must answer alike: the walk replaces openat2
// where a kernel or a container does not offer it.
func TestOpenWalkingAgreesWithOpenat2(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(in("a/b"), 0o755),
		os.WriteFile(in("a/b/file"), nil, 0o644),
		os.Symlink("b", in("a/link")),
		os.Symlink("missing", in("a/dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFD(root)

	read, look, list := unix.O_RDONLY, unix.O_PATH, unix.O_RDONLY|unix.O_DIRECTORY
	for name, tc := range map[string]struct {
		rel   string
		flags int
		want  error
	}{
		"file":             {"a/b/file", read, nil},
		"file by path":     {"a/b/file", look, nil},
		"root":             {".", list, nil},
		"directory":        {"a/b/", list, nil},
		"dots":             {"./a/./b/file", read, nil},
		"missing":          {"a/none", read, unix.ENOENT},
		"missing on way":   {"none/x", read, unix.ENOENT},
		"link":             {"a/link", read, unix.ELOOP},
		"link by path":     {"a/link", look, unix.ELOOP},
		"link as dir":      {"a/link", list, unix.ELOOP},
		"dangling":         {"a/dangling", read, unix.ELOOP},
		"through link":     {"a/link/file", read, unix.ELOOP},
		"below file":       {"a/b/file/x", read, unix.ENOTDIR},
		"file as dir":      {"a/b/file", list, unix.ENOTDIR},
		"create existing":  {"a/b/file", unix.O_CREAT | unix.O_EXCL | unix.O_RDWR, unix.EEXIST},
		"create over link": {"a/dangling", unix.O_CREAT | unix.O_EXCL | unix.O_RDWR, unix.EEXIST},
	} {
		t.Run(name, func(t *testing.T) {
			for way, open2 := range map[string]func(int, string, open) (int, error){
				"openat2": openat2, "walk": openWalking,
			} {
				fd, err := open2(root, tc.rel, open{flags: tc.flags, mode: modeFor(tc.flags)})
				if err == nil {
					closeFD(fd)
				}
				if !errors.Is(err, tc.want) {
					t.Errorf("%s: got %v, want %v", way, err, tc.want)
				}
			}
		})
	}
}

// modeFor is what openat2 demands: a mode only for a file that is created.
func modeFor(flags int) uint32 {
	if flags&unix.O_CREAT == 0 {
		return 0
	}
	return 0o600
}
