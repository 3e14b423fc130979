package files

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/maxprocs"
	"github.com/atoll-run/atoll/internal/testkit/need"
	"github.com/atoll-run/atoll/internal/wire"
)

// scene makes a root with all that is to be refused in it, and a directory
// beside it that nothing may reach.
func scene(t *testing.T) (root string) {
	t.Helper()
	need.Root(t, "it mounts file systems")
	base := t.TempDir()
	root, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	for _, dir := range []string{root, outside, root + "/dir/sub", root + "/mnt"} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	for name, content := range map[string]string{
		outside + "/secret": "secret", root + "/file": "file", root + "/dir/sub/deep": "deep", root + "/two": "x", root + "/mountedfile": "below",
	} {
		must(t, os.WriteFile(name, []byte(content), 0o644))
	}
	must(t, os.Symlink(outside+"/secret", root+"/link"))
	must(t, os.Symlink("file", root+"/innerlink"))
	must(t, os.Symlink(outside, root+"/dirlink"))
	must(t, os.Symlink("dir", root+"/innerdirlink"))
	must(t, os.Symlink("/proc/self/fd/0", root+"/magic"))
	must(t, os.Link(root+"/two", root+"/hard"))
	must(t, unix.Mkfifo(root+"/fifo", 0o644))
	must(t, unix.Mknod(root+"/device", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	l, err := net.Listen("unix", root+"/socket")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	mount(t, "tmpfs", root+"/mnt", "tmpfs", 0)
	must(t, os.WriteFile(root+"/mnt/inside", []byte("mounted"), 0o644))
	mount(t, outside+"/secret", root+"/mountedfile", "", unix.MS_BIND)
	return root
}

func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	must(t, unix.Mount(source, target, kind, flags, ""))
	t.Cleanup(func() { must(t, unix.Unmount(target, unix.MNT_DETACH)) })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bothWays runs a test with openat2, and with the walk that replaces it.
func bothWays(t *testing.T, f func(t *testing.T, g *Server)) {
	t.Run("openat2", func(t *testing.T) {
		g := NewServer(maxprocs.NewLimiter())
		if !g.openat2 {
			t.Fatal("this kernel has no openat2")
		}
		f(t, g)
	})
	t.Run("walk", func(t *testing.T) {
		g := NewServer(maxprocs.NewLimiter())
		g.openat2 = false
		f(t, g)
	})
}

func codeOf(err error) wire.Code {
	if err == nil {
		return ""
	}
	return wire.AsError(fileError(err)).Code
}

func TestOpenRefusesByName(t *testing.T) {
	root := scene(t)
	tests := map[string]wire.Code{
		"file":                           "",
		"dir/sub/deep":                   "",
		"link":                           wire.CodeSymlink,
		"innerlink":                      wire.CodeSymlink,
		"magic":                          wire.CodeSymlink,
		"dirlink/secret":                 wire.CodeSymlink,
		"dirlink/x/y":                    wire.CodeSymlink,
		"innerdirlink/sub/deep":          wire.CodeSymlink,
		"magic/x":                        wire.CodeSymlink,
		"hard":                           wire.CodeHardLink,
		"two":                            wire.CodeHardLink,
		"fifo":                           wire.CodeFIFO,
		"device":                         wire.CodeDevice,
		"socket":                         wire.CodeSocket,
		"dir":                            wire.CodeIsDir,
		".":                              wire.CodeIsDir,
		"mnt":                            wire.CodeMount,
		"mnt/inside":                     wire.CodeMount,
		"mountedfile":                    wire.CodeMount,
		"missing":                        wire.CodeFileNotFound,
		"missing/x":                      wire.CodeFileNotFound,
		"file/x":                         wire.CodeNotDir,
		"..":                             wire.CodeOutside,
		"../outside/secret":              wire.CodeOutside,
		"dir/../../outside":              wire.CodeOutside,
		"":                               wire.CodeInvalid,
		"/etc/passwd":                    wire.CodeInvalid,
		"dir//sub":                       wire.CodeInvalid,
		"./file":                         wire.CodeInvalid,
		"file\x00":                       wire.CodeInvalid,
		strings.Repeat("n", 256):         wire.CodeInvalid,
		strings.Repeat("d/", 2048) + "x": wire.CodeInvalid,
	}
	bothWays(t, func(t *testing.T, g *Server) {
		for name, want := range tests {
			s, err := g.locate(&wire.RootedPath{Root: wire.Text(root), Path: wire.Text(name)})
			if err == nil {
				var fd int
				if fd, _, err = s.openRegular(); err == nil {
					unix.Close(fd)
				} else if name == "." && codeOf(err) == wire.CodeMount { // if the test's directory is one
					err = refuse(wire.CodeIsDir)
				}
				s.close()
			}
			if got := codeOf(err); got != want {
				t.Errorf("%.40q: %q, want %q", name, got, want)
			}
		}
	})
}

func TestRootRefusals(t *testing.T) {
	root := scene(t)
	tests := map[string]wire.Code{
		root:                            "",
		root + "/dir":                   "",
		root + "/mnt":                   "", // a root may be a mount: mostly it is
		"/":                             "",
		root + "/dirlink":               wire.CodeSymlink,
		root + "/innerdirlink/sub":      wire.CodeSymlink,
		root + "/file":                  wire.CodeNotDir, // for what is below it
		root + "/missing":               wire.CodeFileNotFound,
		"/proc":                         wire.CodeInvalid,
		"/proc/self/fd":                 wire.CodeSymlink,
		"/proc/1":                       wire.CodeInvalid,
		"/sys":                          wire.CodeInvalid,
		"relative":                      wire.CodeInvalid,
		"":                              wire.CodeInvalid,
		root + "/":                      wire.CodeInvalid,
		root + "/../" + "root":          wire.CodeInvalid,
		"/proc/self/root" + root:        wire.CodeSymlink,
		"/" + strings.Repeat("x", 5000): wire.CodeInvalid,
	}
	bothWays(t, func(t *testing.T, g *Server) {
		for name, want := range tests {
			s, err := g.locate(&wire.RootedPath{Root: wire.Text(name), Path: "x"})
			if err == nil {
				s.close()
			}
			got := codeOf(err)
			if want == wire.CodeSymlink && got == wire.CodeNotDir { // a link where a directory should be
				got = want
			}
			if got != want {
				t.Errorf("%.60q: %q, want %q", name, got, want)
			}
		}
	})
}

// TestFileRoots: a file that is mounted can be a root, and be read as such.
func TestFileRoots(t *testing.T) {
	root := scene(t)
	tests := map[string]wire.Code{
		root + "/mountedfile": "", root + "/file": "",
		root + "/link": wire.CodeSymlink, root + "/fifo": wire.CodeFIFO, root + "/hard": wire.CodeHardLink, root + "/device": wire.CodeDevice,
		"/proc/self/environ": wire.CodeSymlink, "/proc/1/environ": wire.CodeInvalid, "/proc/meminfo": wire.CodeInvalid,
	}
	bothWays(t, func(t *testing.T, g *Server) {
		for name, want := range tests {
			s, err := g.locate(&wire.RootedPath{Root: wire.Text(name), Path: "."})
			if err == nil {
				var fd int
				if fd, _, err = s.openRegular(); err == nil {
					unix.Close(fd)
				}
				s.close()
			}
			if got := codeOf(err); got != want {
				t.Errorf("%q: %q, want %q", name, got, want)
			}
			if _, err := g.locateWritable(&wire.RootedPath{Root: wire.Text(name), Path: "."}, true); err == nil {
				t.Errorf("%q can be replaced", name)
			}
		}
	})
}

// TestErrnoCodes: every errno has a code of the wire.
func TestErrnoCodes(t *testing.T) {
	if got := codeOf(unix.EIO); got != wire.CodeInternal {
		t.Errorf("EIO: %q", got)
	}
	if err := fileError(nil); err != nil {
		t.Error(err)
	}
	plain := errors.New("plain")
	if err := fileError(plain); !errors.Is(err, plain) {
		t.Error(err)
	}
}
