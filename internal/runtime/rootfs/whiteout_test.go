package rootfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// merged lays layers over each other in a user namespace, as a sandbox of an
// ordinary user does, and lists what is seen.
func merged(t *testing.T, lowers ...string) string {
	t.Helper()
	script := `mount -t overlay overlay -o "userxattr,lowerdir=$1" "$2" && cd "$2" && find . -mindepth 1 -printf '%P %y\n' | LC_ALL=C sort`
	cmd := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", strings.Join(lowers, ":"), t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("overlay in a user namespace: %v: %s", err, out)
	}
	return string(out)
}

func TestLayersMergeAsTheImageMeant(t *testing.T) {
	lower, upper := t.TempDir(), t.TempDir()
	for dir, data := range map[string][]byte{
		lower: pack(t, tarFile("keep", ""), tarFile("gone", ""), tarFile("dir/a", ""), tarFile("dir/b", ""), tarFile("wiped/old", ""),
			tarFile("remade/old", ""), tarFile("early/old", ""), tarFile("changed", "")),
		upper: pack(t, tarFile(".wh.gone", ""), tarFile("dir/.wh.a", ""), tarFile("wiped/.wh..wh..opq", ""), tarFile("wiped/new", ""),
			tarFile("remade/new", ""), tarFile(".wh.remade", ""), // the whiteout after what replaces it
			tarFile(".wh.early", ""), tarFile("early/new", ""), // and before
			tarFile("changed", ""), tarFile(".wh.changed", ""), tarFile(".wh..wh.plnk", "")),
	} {
		if _, err := unpackInto(t.Context(), data, dir, Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	want := "changed f\ndir d\ndir/b f\nearly d\nearly/new f\nkeep f\nremade d\nremade/new f\nwiped d\nwiped/new f\n"
	if got := merged(t, upper, lower); got != want {
		t.Errorf("merged:\n%s\nwant:\n%s", got, want)
	}
}

func TestRootMarksOpaqueDirectoriesForBothKindsOfMount(t *testing.T) {
	dir := t.TempDir()
	if _, err := unpackInto(t.Context(), pack(t, tarFile("d/.wh..wh..opq", "")), dir, Limits{}); err != nil {
		t.Fatal(err)
	}
	marks := []string{opaqueByUser}
	if os.Geteuid() == 0 {
		marks = append(marks, opaqueByRoot)
	}
	value := make([]byte, 8)
	for _, mark := range marks {
		if n, err := unix.Getxattr(filepath.Join(dir, "d"), mark, value); err != nil || string(value[:n]) != "y" {
			t.Errorf("%s = %q, %v", mark, value[:max(n, 0)], err)
		}
	}
}
