package hostpath_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// place makes a directory with a file and opens it as a root; outside is a
// directory beside it that nothing below the root may reach.
func place(t *testing.T) (root *os.File, dir, outside string) {
	t.Helper()
	base := t.TempDir()
	dir, outside = filepath.Join(base, "root"), filepath.Join(base, "outside")
	for _, d := range []string{filepath.Join(dir, "sub"), outside} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "sub", "file"), "inside")
	write(t, filepath.Join(outside, "secret"), "secret")
	root, err := hostpath.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, root.Close()) })
	return root, dir, outside
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenRegularBeneathRefusesByName(t *testing.T) {
	root, dir, outside := place(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, os.Symlink(filepath.Join(outside, "secret"), in("link-out")))
	must(t, os.Symlink("sub/file", in("link-in")))
	must(t, os.Symlink(outside, in("dir-link")))
	must(t, os.Symlink("missing", in("dangling")))
	must(t, os.Link(filepath.Join(outside, "secret"), in("hard")))
	must(t, unix.Mkfifo(in("pipe"), 0o644))
	must(t, unix.Mknod(in("socket"), unix.S_IFSOCK|0o644, 0))
	write(t, in("large"), strings.Repeat("x", 11))

	for name, tc := range map[string]struct {
		rel  string
		want error
	}{
		"parent":               {"../outside/secret", hostpath.ErrEscapes},
		"parent in the middle": {"sub/../../outside/secret", hostpath.ErrEscapes},
		"absolute":             {filepath.Join(outside, "secret"), hostpath.ErrEscapes},
		"empty":                {"", hostpath.ErrEscapes},
		"NUL":                  {"sub/file\x00", hostpath.ErrEscapes},
		"link out":             {"link-out", hostpath.ErrSymlink},
		"link that stays in":   {"link-in", hostpath.ErrSymlink},
		"through a link":       {"dir-link/secret", hostpath.ErrSymlink},
		"dangling link":        {"dangling", hostpath.ErrSymlink},
		"hard link":            {"hard", hostpath.ErrHardLink},
		"pipe":                 {"pipe", hostpath.ErrFIFO},
		"socket":               {"socket", hostpath.ErrSocket},
		"directory":            {"sub", hostpath.ErrDirectory},
		"root itself":          {".", hostpath.ErrDirectory},
		"below a file":         {"sub/file/x", hostpath.ErrNotDirectory},
		"too large":            {"large", hostpath.ErrTooLarge},
		"missing":              {"sub/none", fs.ErrNotExist},
		"name too long":        {strings.Repeat("n", 300), unix.ENAMETOOLONG},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := hostpath.OpenRegularBeneath(root, tc.rel, 10)
			if err == nil {
				must(t, file.Close())
			}
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestOpenRegularBeneathRefusesDevices(t *testing.T) {
	dev, err := hostpath.OpenDir("/dev")
	must(t, err)
	defer func() { must(t, dev.Close()) }()
	if _, err := hostpath.OpenRegularBeneath(dev, "null", hostpath.NoLimit); !errors.Is(err, hostpath.ErrDevice) {
		t.Errorf("got %v, want %v", err, hostpath.ErrDevice)
	}
}

func TestReadRegularBeneath(t *testing.T) {
	root, _, _ := place(t)
	for _, max := range []int64{6, 100, hostpath.NoLimit} {
		data, err := hostpath.ReadRegularBeneath(root, "sub/file", max)
		if string(data) != "inside" || err != nil {
			t.Errorf("max %d: got %q, %v", max, data, err)
		}
	}
	if _, err := hostpath.ReadRegularBeneath(root, "sub/file", 5); !errors.Is(err, hostpath.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, hostpath.ErrTooLarge)
	}
}

func TestWriteBeneath(t *testing.T) {
	root, dir, _ := place(t)
	n, err := hostpath.WriteBeneath(root, "sub/new", strings.NewReader("hello"), hostpath.WriteOptions{Mode: 0o640})
	if n != 5 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	info, err := os.Stat(filepath.Join(dir, "sub", "new"))
	must(t, err)
	if info.Mode() != 0o640 {
		t.Errorf("mode %v, want 0640", info.Mode())
	}
	_, err = hostpath.WriteBeneath(root, "sub/new", strings.NewReader("other"), hostpath.WriteOptions{})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("second exclusive write: %v, want %v", err, fs.ErrExist)
	}
	_, err = hostpath.WriteBeneath(root, "sub/new", strings.NewReader("other"), hostpath.WriteOptions{Replace: true})
	must(t, err)
	got, err := hostpath.ReadRegularBeneath(root, "sub/new", hostpath.NoLimit)
	if string(got) != "other" || err != nil {
		t.Errorf("after replacing: %q, %v", got, err)
	}
	onlyNames(t, filepath.Join(dir, "sub"), "file", "new")
}

// onlyNames checks that a directory holds exactly these names: no temporary file stays.
func onlyNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func TestWriteBeneathNeverWritesThroughALink(t *testing.T) {
	root, dir, outside := place(t)
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "leaf")))
	must(t, os.Symlink(outside, filepath.Join(dir, "way")))
	for name, tc := range map[string]struct {
		rel     string
		replace bool
		want    error
	}{
		"exclusive over a link": {"leaf", false, fs.ErrExist},
		"replacing a link":      {"leaf", true, nil},
		"below a link":          {"way/new", true, hostpath.ErrSymlink},
		"out":                   {"../outside/new", true, hostpath.ErrEscapes},
		"the root":              {".", true, hostpath.ErrEscapes},
		"a directory":           {"sub", true, hostpath.ErrDirectory},
		"no directory":          {"none/new", false, fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := hostpath.WriteBeneath(root, tc.rel, strings.NewReader("x"), hostpath.WriteOptions{Replace: tc.replace})
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	secret, err := os.ReadFile(filepath.Join(outside, "secret"))
	if string(secret) != "secret" || err != nil {
		t.Errorf("the file outside became %q, %v", secret, err)
	}
	onlyNames(t, outside, "secret")
	onlyNames(t, dir, "leaf", "sub", "way")
}

func TestWriteBeneathLeavesNothingOnFailure(t *testing.T) {
	root, dir, _ := place(t)
	failing := io.MultiReader(strings.NewReader("part"), brokenReader{})
	_, err := hostpath.WriteBeneath(root, "sub/new", failing, hostpath.WriteOptions{})
	if !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	_, err = hostpath.WriteBeneath(root, "sub/new", bytes.NewReader(make([]byte, 11)), hostpath.WriteOptions{Max: 10})
	if !errors.Is(err, hostpath.ErrTooLarge) {
		t.Errorf("got %v, want %v", err, hostpath.ErrTooLarge)
	}
	onlyNames(t, filepath.Join(dir, "sub"), "file")
}

var errBroken = errors.New("broken source")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }
