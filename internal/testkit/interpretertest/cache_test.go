package interpretertest_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The image is kept between runs of the tests: its packages are 140 MB. Atoll itself
// decides whether it is up to date.

// cacheRoot is where scripts/sdks.sh keeps what it fetched.
func cacheRoot() string { return cmp.Or(os.Getenv("ATOLL_SDKS_DIR"), "/var/tmp/atoll-sdks") }

// cacheDir names the kept images by what makes them and how they are stored.
func cacheDir(t *testing.T) string {
	t.Helper()
	sum := sha256.New()
	for _, dir := range []string{"../../../images/code-interpreter/files", "../../../images/local", "../../runtime/rootfs", "../../runtime/image/local"} {
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			sum.Write([]byte(path))
			sum.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(cacheRoot(), "code-interpreter-"+hex.EncodeToString(sum.Sum(nil))[:12])
}

// link copies a store of images; layers, which never change, by hard links.
func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-a", from + "/index.json"}, {"-al", from + "/layers"}} {
		if out, err := exec.CommandContext(t.Context(), "cp", append(args, to)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// take puts the kept images into a state directory, if there are any.
func take(t *testing.T, state string) {
	t.Helper()
	if _, err := os.Stat(cacheDir(t)); err == nil {
		link(t, cacheDir(t), filepath.Join(state, "images"))
	}
}

// keep keeps the images of a state directory in the place of earlier ones.
func keep(t *testing.T, state string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(cacheRoot(), "code-interpreter-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range old {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	half, err := os.MkdirTemp(cacheRoot(), "half-") //nolint:usetesting // it becomes the kept one
	if err != nil {
		t.Fatal(err)
	}
	link(t, filepath.Join(state, "images"), half)
	if err := os.Rename(half, cacheDir(t)); err != nil {
		t.Fatal(err)
	}
}
