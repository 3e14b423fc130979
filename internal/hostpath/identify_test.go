package hostpath_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// base is a temporary directory whose own path holds no link.
func base(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return dir
}

func TestIdentifyCanonical(t *testing.T) {
	dir := base(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.MkdirAll(in("real/sub"), 0o755))
	write(t, in("real/file"), "x")
	must(t, os.Symlink("real", in("link")))
	must(t, os.Symlink(in("link"), in("twice")))
	must(t, os.Symlink("sub/../../real/missing/../other", in("real/crooked")))
	must(t, os.Symlink("nowhere/deep", in("dangling")))
	must(t, os.Symlink("../../../../../../../../../../../../etc", in("up")))
	must(t, os.Symlink("/var/run", in("run")))
	varRun, err := filepath.EvalSymlinks("/var/run")
	must(t, err)

	for name, tc := range map[string]struct {
		path, want string
		exists     bool
	}{
		"root":                     {"/", "/", true},
		"plain":                    {in("real/file"), in("real/file"), true},
		"slashes and dots":         {dir + "//real/./sub/../file", in("real/file"), true},
		"link":                     {in("link/file"), in("real/file"), true},
		"link to a link":           {in("twice/sub"), in("real/sub"), true},
		"missing leaf":             {in("real/new/leaf"), in("real/new/leaf"), false},
		"missing leaf under link":  {in("twice/new/leaf"), in("real/new/leaf"), false},
		"dangling link":            {in("dangling"), in("nowhere/deep"), false},
		"below a dangling link":    {in("dangling/x"), in("nowhere/deep/x"), false},
		"link with missing parent": {in("real/crooked"), in("real/other"), false},
		"link beyond the root":     {in("up"), "/etc", true},
		"V29":                      {in("run/not-created"), varRun + "/not-created", false},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := hostpath.Identify(tc.path)
			must(t, err)
			if facts.Canonical != tc.want || facts.Exists != tc.exists {
				t.Errorf("got %s (exists %v), want %s (exists %v)", facts.Canonical, facts.Exists, tc.want, tc.exists)
			}
		})
	}
}

func TestIdentifyRefuses(t *testing.T) {
	dir := base(t)
	write(t, filepath.Join(dir, "file"), "x")
	must(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	must(t, os.Symlink("/proc/self/root/etc", filepath.Join(dir, "magic")))
	for name, tc := range map[string]struct{ path, want string }{
		"relative":       {"etc/passwd", "not an absolute path"},
		"empty":          {"", "not an absolute path"},
		"NUL":            {"/etc\x00/x", "NUL byte"},
		"loop":           {filepath.Join(dir, "loop"), "more than 40 symbolic links"},
		"magic link":     {filepath.Join(dir, "magic"), hostpath.ErrMagicLink.Error()},
		"below a file":   {filepath.Join(dir, "file/x"), hostpath.ErrNotDirectory.Error()},
		"300-byte name":  {"/" + strings.Repeat("n", 300), "name too long"},
		"64 KiB of path": {"/" + strings.Repeat("nn/", 1<<15) + strings.Repeat("n", 300), ""},
	} {
		t.Run(name, func(t *testing.T) {
			facts, err := hostpath.Identify(tc.path)
			if tc.want == "" {
				if err != nil || facts.Exists {
					t.Errorf("got %v, exists %v", err, facts.Exists)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestIdentifyFacts(t *testing.T) {
	dir := base(t)
	path := filepath.Join(dir, "file")
	write(t, path, "four")
	must(t, os.Chmod(path, 0o640))
	must(t, os.Symlink("file", filepath.Join(dir, "link")))
	var st unix.Stat_t
	must(t, unix.Stat(path, &st))
	got, err := hostpath.Identify(filepath.Join(dir, "link"))
	must(t, err)
	want := hostpath.Facts{
		Path: filepath.Join(dir, "link"), Canonical: path, Exists: true,
		Kind: hostpath.KindFile, Mode: 0o640, UID: st.Uid, GID: st.Gid,
		Links: 1, Size: 4, Device: uint64(st.Dev), Inode: st.Ino,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestKinds(t *testing.T) {
	dir := base(t)
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, unix.Mknod(filepath.Join(dir, "socket"), unix.S_IFSOCK|0o600, 0))
	write(t, filepath.Join(dir, "file"), "")
	for path, want := range map[string]hostpath.Kind{
		dir:                          hostpath.KindDirectory,
		filepath.Join(dir, "file"):   hostpath.KindFile,
		filepath.Join(dir, "pipe"):   hostpath.KindFIFO,
		filepath.Join(dir, "socket"): hostpath.KindSocket,
		"/dev/null":                  hostpath.KindDevice,
	} {
		facts, err := hostpath.Identify(path)
		if err != nil || facts.Kind != want {
			t.Errorf("%s: got %v, %v, want %v", path, facts.Kind, err, want)
		}
	}
	if disk := (hostpath.Disk{}); !disk.Socket(filepath.Join(dir, "socket")) || disk.Socket(dir) {
		t.Error("Disk.Socket does not tell sockets from others")
	}
}

func TestWritableBy(t *testing.T) {
	dir := func(mode os.FileMode) hostpath.Facts {
		return hostpath.Facts{Exists: true, Kind: hostpath.KindDirectory, Mode: mode, UID: 1000, GID: 2000}
	}
	for name, tc := range map[string]struct {
		facts hostpath.Facts
		uid   uint32
		gids  []uint32
		want  bool
	}{
		"owner":                    {dir(0o700), 1000, nil, true},
		"owner without write":      {dir(0o577), 1000, nil, false},
		"owner without search":     {dir(0o677), 1000, nil, false},
		"group":                    {dir(0o770), 1, []uint32{7, 2000}, true},
		"group of a closed group":  {dir(0o707), 1, []uint32{2000}, false},
		"other":                    {dir(0o777), 1, nil, true},
		"other of a private one":   {dir(0o700), 1, nil, false},
		"root":                     {dir(0o000), 0, nil, true},
		"missing":                  {hostpath.Facts{Mode: 0o777}, 0, nil, false},
		"file needs only write":    {hostpath.Facts{Exists: true, Kind: hostpath.KindFile, Mode: 0o602}, 1, nil, true},
		"sticky bits do not count": {dir(0o7000), 1, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.facts.WritableBy(tc.uid, tc.gids...); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	if got := dir(0).Owner(); got != "1000:2000" {
		t.Errorf("owner is %q", got)
	}
}

func TestHomes(t *testing.T) {
	dir := base(t)
	must(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	must(t, os.Symlink("real", filepath.Join(dir, "link")))
	env := map[string]string{"HOME": filepath.Join(dir, "link") + "/", "OPENCLAW_HOME": "relative/ignored"}
	homes := hostpath.Homes(func(name string) string { return env[name] })
	for _, want := range []string{filepath.Join(dir, "link"), filepath.Join(dir, "real")} {
		if !slices.Contains(homes, want) {
			t.Errorf("%q is not among %q", want, homes)
		}
	}
	if slices.Contains(homes, "relative/ignored") {
		t.Error("a relative home was taken")
	}
}

// exchange swaps two names for as long as the test runs.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	done := make(chan struct{})
	stopped := make(chan error, 1)
	go func() {
		for {
			select {
			case <-done:
				stopped <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				stopped <- err
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		must(t, <-stopped)
	})
}

// contested is a root in which "spot" is now a directory, now a link out.
func contested(t *testing.T) (root *os.File, dir, outside string) {
	root, dir, outside = place(t)
	write(t, filepath.Join(dir, "sub", "secret"), "inside")
	must(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(dir, "spot")))
	must(t, os.Symlink(outside, filepath.Join(dir, "link")))
	return root, dir, outside
}

const raceRounds = 3000

func TestIdentifyIsConsistentWhileALinkIsSwapped(t *testing.T) {
	_, dir, outside := contested(t)
	dir, err := filepath.EvalSymlinks(dir)
	must(t, err)
	inside, err := hostpath.Identify(filepath.Join(dir, "spot/secret"))
	must(t, err)
	target, err := hostpath.Identify(filepath.Join(outside, "secret"))
	must(t, err)
	exchange(t, filepath.Join(dir, "spot"), filepath.Join(dir, "link"))

	seen := map[string]int{}
	for range raceRounds {
		facts, err := hostpath.Identify(filepath.Join(dir, "spot/secret"))
		if errors.Is(err, hostpath.ErrChanged) {
			seen["changed"]++
			continue
		}
		must(t, err)
		seen[facts.Canonical]++
		switch facts.Canonical {
		case inside.Canonical:
			if facts.ID() != inside.ID() {
				t.Fatalf("%s has the identity of another file", facts.Canonical)
			}
		case target.Canonical:
			if facts.ID() != target.ID() {
				t.Fatalf("%s has the identity of another file", facts.Canonical)
			}
		default:
			t.Fatalf("unexpected place %s", facts.Canonical)
		}
	}
	t.Log(seen)
}

func TestOpenRegularBeneathStaysInsideWhileALinkIsSwapped(t *testing.T) {
	root, dir, _ := contested(t)
	exchange(t, filepath.Join(dir, "spot"), filepath.Join(dir, "link"))
	opened := 0
	for range raceRounds {
		data, err := hostpath.ReadRegularBeneath(root, "spot/secret", hostpath.NoLimit)
		switch {
		case err == nil && string(data) == "inside":
			opened++
		case err == nil:
			t.Fatalf("read %q from outside", data)
		case !errors.Is(err, hostpath.ErrSymlink) && !errors.Is(err, hostpath.ErrChanged):
			t.Fatal(err)
		}
	}
	if opened == 0 {
		t.Error("never opened the file: the race was not exercised")
	}
}

func TestWriteBeneathStaysInsideWhileALinkIsSwapped(t *testing.T) {
	root, dir, outside := contested(t)
	exchange(t, filepath.Join(dir, "spot"), filepath.Join(dir, "link"))
	for range raceRounds / 10 {
		_, err := hostpath.WriteBeneath(root, "spot/new", strings.NewReader("x"), hostpath.WriteOptions{Replace: true})
		if err != nil && !errors.Is(err, hostpath.ErrSymlink) {
			t.Fatal(err)
		}
	}
	onlyNames(t, outside, "secret")
}
