package overlay

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/need"
)

// printChoice prints what is chosen for a base and a state directory.
func printChoice(base, state string) error {
	r := Request{State: state, Dir: filepath.Join(state, "overlay/s/0"), Base: base, Kernel: KernelMount{Marks: MarksUser}}
	facts, err := checkBase(r)
	if err != nil {
		return err
	}
	c, err := choose(context.Background(), r, choiceFacts{base: facts, small: Limit{Bytes: 1, Files: 0}})
	fmt.Fprintf(os.Stdout, "%s: %s\n", c.Kind, c.Why)
	return err
}

// In a container the state directory is on overlayfs, which holds no upper.
func TestStateOnOverlayfsIsACopy(t *testing.T) {
	top := t.TempDir()
	fill(t, top, map[string]string{"base/a": "a\n", "lower/": "", "upper/": "", "work/": "", "merged/": ""})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := `cd "$1" && mount -t overlay overlay -o userxattr,lowerdir=lower,upperdir=upper,workdir=work merged && "$2" choose "$1/base" "$1/merged" && "$2" choose "$1/base" "$1/state"`
	out, err := exec.CommandContext(t.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", top, self).CombinedOutput()
	first, second, _ := strings.Cut(string(out), "\n")
	if err != nil || !strings.HasPrefix(first, "copy: ") || !strings.Contains(first, "overlayfs") || !strings.HasPrefix(second, "kernel: ") {
		t.Errorf("%v: %s", err, out)
	}
}

// Where blocks can be shared a copy costs next to nothing, and is taken.
func TestSharedBlocksAreACopy(t *testing.T) {
	need.Root(t, "it mounts a file system")
	need.Program(t, "mkfs.btrfs", "btrfs-progs")
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, argv := range [][]string{{"truncate", "-s", "256M", image}, {"mkfs.btrfs", "-q", image}, {"mount", "-o", "loop", image, dir}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", argv, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	fill(t, dir, map[string]string{"base/a": strings.Repeat("a", 1<<20)})
	r := Request{State: filepath.Join(dir, "state"), Dir: filepath.Join(dir, "state/overlay/s/0"), Base: filepath.Join(dir, "base"), Kernel: KernelMount{Marks: MarksTrusted}}
	tree, err := Prepare(t.Context(), r)
	if err != nil || tree.Kind != Copy || !strings.Contains(tree.Why, "shares blocks") {
		t.Fatalf("%+v, %v", tree, err)
	}
	(&stage{Tree: tree}).expect(t)
	r.State = t.TempDir() // another file system
	r.Dir = filepath.Join(r.State, "overlay/s/0")
	if c, err := Choose(t.Context(), r); err != nil || strings.Contains(c.Why, "shares blocks") {
		t.Errorf("another file system: %+v, %v", c, err)
	}
}
