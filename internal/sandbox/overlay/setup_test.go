package overlay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/testkit/enginetest"
	"github.com/atoll-run/atoll/internal/testkit/otheruser"
)

// ordinary is the uid that the tests run as once more.
const ordinary = 65534

// way is one way of keeping changes apart that this user has.
type way struct {
	name   string
	want   Kind
	kernel KernelMount
	mount  string // options; "" for a copy
	enter  []string
	engine func(testing.TB) string // returns the host of the engine that mounts it; nil if none does
}

func ways() []way {
	all := []way{
		{name: "copy", want: Copy, enter: []string{"sh", "-c"}},
		{name: "user", want: Kernel, kernel: KernelMount{Marks: MarksUser, Volatile: true}, mount: "userxattr,volatile",
			enter: []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c"}},
	}
	if os.Geteuid() == 0 {
		all = append(all, way{name: "root", want: Kernel, kernel: KernelMount{Marks: MarksTrusted, Volatile: true}, mount: "redirect_dir=on,volatile",
			enter: []string{"unshare", "--mount", "sh", "-c"}})
	}
	return all
}

// stage is a base with an overlay above it.
type stage struct {
	*Tree
	way     way
	request Request
}

// TestMain is also the program that scripts call for what the shell cannot do.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "xattr": // file, name, value
			exitWith(unix.Lsetxattr(os.Args[2], os.Args[3], []byte(os.Args[4]), 0))
		case "socket":
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			exitWith(errors.Join(err, unix.Bind(fd, &unix.SockaddrUnix{Name: os.Args[2]})))
		case "mknod": // file, major, minor
			exitWith(unix.Mknod(os.Args[2], unix.S_IFCHR|0o666, int(unix.Mkdev(number(os.Args[3]), number(os.Args[4])))))
		case "choose": // base, state
			exitWith(printChoice(os.Args[2], os.Args[3]))
		case "deep": // name, levels
			exitWith(deep(os.Args[2], number(os.Args[3])))
		}
	}
	os.Exit(m.Run())
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func number(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		exitWith(err)
	}
	return uint32(n)
}

// deep makes directories within each other.
func deep(name string, levels uint32) error {
	for range levels {
		if err := errors.Join(os.Mkdir(name, 0o755), unix.Chdir(name)); err != nil {
			return err
		}
	}
	return nil
}

// eachWay runs a test with every way that this user has.
func eachWay(t *testing.T, base map[string]string, test func(*testing.T, *stage)) {
	t.Helper()
	for _, w := range append(ways(), engineWays(t)...) {
		t.Run(w.name, func(t *testing.T) { test(t, newStage(t, w, base, nil)) })
	}
}

// engineWays returns overlays that engines mount, for attacks: they do it as root.
func engineWays(t *testing.T) (all []way) {
	t.Helper()
	if os.Geteuid() != 0 || !strings.HasPrefix(t.Name(), "TestAttack") {
		return nil
	}
	for name, engine := range enginetest.Overlays() {
		all = append(all, way{name: name, want: Kernel, kernel: KernelMount{Marks: MarksTrusted}, mount: "redirect_dir=on", engine: engine})
	}
	return all
}

func newStage(t *testing.T, w way, base map[string]string, hide HideFunc, change ...func(*Request)) *stage {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "base")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	fill(t, dir, base)
	state := filepath.Join(top, "state")
	r := Request{State: state, Dir: filepath.Join(state, "overlay", "slug", "0"), Base: dir, Target: "/workspace", Owner: "main", Want: w.want, Kernel: w.kernel, Hide: hide}
	for _, c := range change {
		c(&r)
	}
	tree, err := Prepare(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeTree(state); err != nil {
			t.Error(err)
		}
	})
	return &stage{tree, w, r}
}

// fill writes files; a name that ends in "/" is a directory, a content that
// begins with "-> " a link.
func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(at, 0o755))
		case strings.HasPrefix(content, "-> "):
			err = errors.Join(err, os.Symlink(content[3:], at))
		default:
			err = errors.Join(err, os.WriteFile(at, []byte(content), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// inside runs a script in the workspace, as a sandbox does.
func (s *stage) inside(t *testing.T, script string) {
	t.Helper()
	if out, err := s.tryInside(t, script); err != nil {
		t.Fatalf("inside: %v: %s", err, out)
	}
}

func (s *stage) tryInside(t *testing.T, script string) (string, error) {
	t.Helper()
	if s.way.engine != nil {
		mounted := enginetest.Overlay{Base: s.Base, Upper: s.Upper(), Work: s.Work(), Beside: filepath.Dir(s.Base)}
		out, err := mounted.Run(t, s.way.engine(t), "set -e\n"+script)
		return string(out), err
	}
	enter := "cd " + s.Source()
	if s.way.mount != "" {
		at := t.TempDir()
		enter = fmt.Sprintf("mount -t overlay overlay -o lowerdir=%s,upperdir=%s,workdir=%s,%s %s && cd %s", s.Base, s.Upper(), s.Work(), s.way.mount, at, at)
	}
	if err := BeforeMount(s.Dir); err != nil {
		t.Fatal(err)
	}
	args := append(slices.Clone(s.way.enter), "set -e; "+enter+"\n"+script)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HELPER="+self)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// lines returns the changes, one in a line, sorted.
func (s *stage) lines(t *testing.T) string {
	t.Helper()
	var lines []string
	for c, err := range s.Changes(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, lineFor(c))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// content reads a file as the gate does.
func (s *stage) content(t *testing.T, path string) string {
	t.Helper()
	file, err := s.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func lineFor(c Change) string {
	line := string(c.Kind) + " " + c.Path
	if c.Mode.IsDir() || c.OldMode.IsDir() && c.Kind == Deleted {
		line += "/"
	}
	if c.From != "" {
		line += " from " + c.From
	}
	if c.Kind == Link {
		line += " -> " + c.Link
	}
	if c.Kind == Mode {
		line += fmt.Sprintf(" %o -> %o", c.OldMode.Perm(), c.Mode.Perm())
	}
	if c.Hidden {
		line += " hidden"
	}
	return line
}

func (s *stage) expect(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := s.lines(t); got != strings.Join(want, "\n") {
		t.Errorf("changes:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

// TestAsAnOrdinaryUser runs the tests of this package once more without root.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // this is that run
	}
	dir := t.TempDir()
	otheruser.Open(t, dir)
	program, home := filepath.Join(dir, "test"), filepath.Join(dir, "home")
	otheruser.Self(t, program)
	if err := errors.Join(os.Mkdir(home, 0o755), os.Chown(home, ordinary, ordinary)); err != nil {
		t.Fatal(err)
	}
	args := []string{"-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = home, []string{"TMPDIR=" + home, "HOME=" + home, "PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestChanges/user") {
		t.Errorf("%v\n%s", err, out)
	}
}
