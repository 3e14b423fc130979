package workspace_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/workspace"
	"github.com/atoll-run/atoll/internal/testkit/need"
)

const slug = "agent-main-f331f052"

// house is a host with an agent workspace and a root for copies.
type house struct {
	t                       *testing.T
	base, agent, root, copy string
}

func newHouse(t *testing.T) house {
	t.Helper()
	return houseIn(t, t.TempDir())
}

func houseIn(t *testing.T, base string) house {
	t.Helper()
	h := house{t: t, base: base, agent: filepath.Join(base, "agent"), root: filepath.Join(base, "sandboxes")}
	h.copy = filepath.Join(h.root, slug)
	must(t, os.Mkdir(h.agent, 0o755))
	return h
}

func (h house) params(access config.Access) workspace.Params {
	return workspace.Params{Access: access, AgentDir: h.agent, Root: h.root, Slug: slug}
}

func (h house) layout(access config.Access) workspace.Layout {
	h.t.Helper()
	l, err := workspace.NewLayout(h.params(access))
	must(h.t, err)
	return l
}

func (h house) prepare() workspace.Report {
	h.t.Helper()
	report, err := workspace.Prepare(h.t.Context(), h.layout(config.AccessNone), workspace.Options{})
	must(h.t, err)
	return report
}

func (h house) manifestPath() string {
	return filepath.Join(h.root, ".atoll", "manifests", slug+".json")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// fails checks the text of an error and that it says what to do.
func fails(t *testing.T, err error, text, hint string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", text)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("error %q, want it to contain %q", err, text)
	}
	if got := errhint.Of(err); !strings.Contains(got, hint) || hint == "" {
		t.Errorf("hint %q, want it to contain %q", got, hint)
	}
}

// warned checks that exactly one warning is about subject, and its text.
func warned(t *testing.T, warnings []workspace.Warning, subject, text string) {
	t.Helper()
	var about []string
	for _, w := range warnings {
		if strings.Contains(w.Subject, subject) {
			about = append(about, w.String())
		}
	}
	if len(about) != 1 || !strings.Contains(about[0], text) {
		t.Errorf("warnings about %s: %q, want one with %q (all: %v)", subject, about, text, warnings)
	}
}

// snapshot describes everything below dir, so that any change shows.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		rel, _ := filepath.Rel(dir, path)
		text := fmt.Sprintf("%v %d:%d", info.Mode(), st.Uid, st.Gid)
		if info.Mode().IsRegular() {
			text += " " + read(t, path)
		}
		all[rel] = text
		return nil
	}))
	return all
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// needRoot: these tests change owners, mount and drop rights.
func needRoot(t *testing.T) {
	t.Helper()
	need.Root(t, "it changes owners and mounts")
}

// asUser runs f with the rights of another user: only this thread changes its
// effective ids, so f must not start goroutines.
func asUser(t *testing.T, uid int, f func()) {
	t.Helper()
	needRoot(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := func(call uintptr, id int) {
		if _, _, errno := syscall.RawSyscall(call, ^uintptr(0), uintptr(id), ^uintptr(0)); errno != 0 {
			t.Fatal(errno)
		}
	}
	set(unix.SYS_SETRESGID, uid)
	set(unix.SYS_SETRESUID, uid)
	defer set(unix.SYS_SETRESGID, 0)
	defer set(unix.SYS_SETRESUID, 0)
	f()
}

// ownedHouse is a house that belongs to another user.
func ownedHouse(t *testing.T, uid int) house {
	t.Helper()
	needRoot(t)
	base := t.TempDir()
	must(t, os.Chmod(filepath.Dir(base), 0o755)) // which package testing keeps for the caller alone
	h := houseIn(t, base)
	must(t, os.Chown(h.base, uid, uid))
	must(t, os.Chown(h.agent, uid, uid))
	return h
}

// smallDisk mounts a file system of the given size, such as "256k".
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	needRoot(t)
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755,size="+size); err != nil {
		t.Fatalf("cannot mount a tmpfs for the test: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}
