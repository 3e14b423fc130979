package headstart_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/dockercli/entry"
	"github.com/atoll-run/atoll/internal/dockercli/express"
	"github.com/atoll-run/atoll/internal/dockercli/headstart"
	"github.com/atoll-run/atoll/internal/lease"
	"github.com/atoll-run/atoll/internal/wire"
)

// whole has the whole program carry a line out, or what is left of it.
func (l *lab) whole(begun *headstart.Begun, stdin string, args []string) (out string, code int) {
	l.Helper()
	var stdout, stderr bytes.Buffer
	terminal := &dockercli.Terminal{In: begun.Input(strings.NewReader(stdin)), Out: &stdout, Err: &stderr, Getenv: func(string) string { return "" }}
	code, done := dockercli.Express(l.Context(), args, terminal, express.New(l.dir, begun))
	if !done {
		return "elsewhere", 0
	}
	return stdout.String() + stderr.String(), code
}

// taken are lines that have a head start.
var taken = []string{
	"exec some true",
	"exec " + id + " true",
	"exec -i some sh -c cat_>file",
	"exec --interactive -w /tmp some pwd",
	"exec --workdir /tmp -e A=1 -e B= --env LANG=de some env -i -t",
	"exec -e A=1 -e A=2 -e HOME=/home/x -e PATH=/x some env",
	"exec -e WORDS=a_b_c some \"quoted\"_\\_\t\x01 é",
	"exec --env-file DIR/env --env-file DIR/more -e FROM=flag some env",
	"exec -w EMPTY some pwd",
}

func TestItAsksForWhatTheWholeProgramAsksFor(t *testing.T) {
	for _, entered := range []struct {
		name   string
		change func(*entry.Entry)
	}{
		{"as it is", func(*entry.Entry) {}},
		{"without variables", func(e *entry.Entry) { e.Env, e.Home = "", "" }},
		{"with its own home", func(e *entry.Entry) { e.Env = "HOME=/own" + entry.End + "HOSTNAME=other" }},
	} {
		t.Run(entered.name, func(t *testing.T) {
			l := newLab(t)
			entered.change(&l.entry)
			l.save()
			l.write("env", "FROM=file\r\n# comment\n\n  \tINDENTED=1\nLAST=no end\nFROM=again")
			l.write("more", "LANG=en\nLAST=more\n")
			for _, line := range taken {
				args := l.words(line)
				heard := l.serve(started, success)
				if out, code := l.whole(nil, "", args); out != "" || code != 0 {
					t.Fatalf("%q: %q %d", args, out, code)
				}
				theirs := <-heard
				heard = l.serve(started, success)
				call := &headstart.Call{}
				if !call.Ask(args, l.environ()) {
					t.Fatalf("%q is left to the whole program", args)
				}
				ours := <-heard
				if code, over := call.Hear(); !over || code != 0 {
					t.Errorf("%q: over %v, code %d", args, over, code)
				}
				call.Close()
				if !wire.ValidID(ours.Exec.ID) || !wire.ValidID(ours.Hello.Client) || ours.Exec.ID == ours.Hello.Client {
					t.Errorf("%q: client %q, command %q", args, ours.Hello.Client, ours.Exec.ID)
				}
				differ := []cmp.Option{cmpopts.IgnoreFields(wire.Exec{}, "ID"), cmpopts.IgnoreFields(wire.Hello{}, "Client"), cmpopts.IgnoreUnexported(asked{})}
				if diff := cmp.Diff(theirs, ours, differ...); diff != "" {
					t.Errorf("%q (-whole program +head start):\n%s", args, diff)
				}
			}
		})
	}
}

// unusual is a call in a lab where something may be different.
type unusual struct {
	name, line string
	change     func(l *lab)
}

func (u *unusual) lab(t *testing.T) *lab {
	t.Helper()
	l := newLab(t)
	if u.change != nil {
		u.change(l)
		l.save()
	}
	return l
}

// left are calls that have none: nothing is asked for, and nothing is held.
var left = []unusual{
	{"no verb", "", nil},
	{"another verb", "ps -a", nil},
	{"no command", "exec some", nil},
	{"a flag without its value", "exec -w", nil},
	{"a terminal", "exec -t some true", nil},
	{"joined flags", "exec -it some true", nil},
	{"in the background", "exec -d some true", nil},
	{"another user", "exec -u 1 some true", nil},
	{"a flag with =", "exec --workdir=/tmp some true", nil},
	{"the end of flags", "exec -- some true", nil},
	{"another directory", "exec -w tmp some true", nil},
	{"a variable of ours", "exec -e A some true", nil},
	{"a secret", "exec -e my_token=1 some true", nil},
	{"a secret by name", "exec -e Aws_Secret_Key=1 some true", nil},
	{"no variable", "exec -e =1 some true", nil},
	{"a name that is none", "exec -e A.B=1 some true", nil},
	{"many flags", "exec" + strings.Repeat(" -e A=1", 33) + " some true", nil},
	{"no file", "exec --env-file DIR/none some true", nil},
	{"a directory", "exec --env-file DIR some true", nil},
	{"a device", "exec --env-file /dev/null some true", nil},
	{"a pipe", "exec --env-file DIR/pipe some true", func(l *lab) { check(l.T, unix.Mkfifo(filepath.Join(l.dir, "pipe"), 0o600)) }},
	{"a bad line", "exec --env-file DIR/env some true", func(l *lab) { l.write("env", "A B=1") }},
	{"a zero byte", "exec --env-file DIR/env some true", func(l *lab) { l.write("env", "A=1\x002") }},
	{"a long file", "exec --env-file DIR/env some true", func(l *lab) { l.write("env", "A="+strings.Repeat("x", 30<<10)) }},
	{"many variables", "exec --env-file DIR/env some true", func(l *lab) {
		var env strings.Builder
		for i := range 300 {
			fmt.Fprintf(&env, "A%d=1\n", i)
		}
		l.write("env", env.String())
	}},
	{"a long command", "exec some " + strings.Repeat("x", 40<<10), nil},
	{"bytes that are no text", "exec some a\xff", nil},
	{"no container", "exec other true", nil},
	{"the beginning of an id", "exec abab true", nil},
	{"an unknown id", "exec " + strings.Repeat("cd", 32) + " true", nil},
	{"an id of another", "exec " + id + " true", func(l *lab) { l.entry.ID = strings.Repeat("cd", 32) }},
	{"a name that leads away", "exec ../containers/some true", nil},
	{"a link that leads away", "exec " + strings.Repeat("ef", 32) + " true", func(l *lab) {
		check(l.T, os.Symlink("../containers/some", filepath.Join(l.dir, entry.RecordsDir, entry.IDsDir, strings.Repeat("ef", 32))))
	}},
	{"paused", "exec some true", func(l *lab) { l.entry.Paused = entry.Yes }},
	{"attended", "exec some true", func(l *lab) { l.entry.Attached = entry.Yes }},
	{"not running", "exec some true", func(l *lab) { l.entry.Process = "" }},
	{"a process without a name", "exec some true", func(l *lab) { l.entry.Process = "a b" }},
	{"no guest", "exec some true", func(l *lab) { l.entry.Socket = "" }},
	{"nobody listens", "exec some true", func(l *lab) { _ = l.door.Close() }},
	{"not a socket", "exec some true", func(l *lab) { l.write("plain", ""); l.entry.Socket = filepath.Join(l.dir, "plain") }},
	{"a link to the socket", "exec some true", func(l *lab) {
		check(l.T, os.Symlink(l.entry.Socket, filepath.Join(l.dir, "link")))
		l.entry.Socket = filepath.Join(l.dir, "link")
	}},
	{"another process", "exec some true", func(l *lab) { l.entry.PID = strconv.Itoa(os.Getppid()) }},
	{"a process that is no number", "exec some true", func(l *lab) { l.entry.PID = "self" }},
	{"a process born later", "exec some true", func(l *lab) { l.entry.Birth += "1" }},
	{"a process of another run", "exec some true", func(l *lab) { l.entry.Birth = "x" + l.entry.Birth }},
	{"a process without a birth", "exec some true", func(l *lab) { l.entry.Birth = ":" }},
	{"no place of the lease", "exec some true", func(l *lab) { l.entry.Place = "-1" }},
	{"no leases", "exec some true", func(l *lab) { check(l.T, os.Remove(filepath.Join(l.dir, entry.LeasesFile))) }},
	{"the sandbox is held", "exec some true", func(l *lab) {
		held, err := lease.Existing(filepath.Join(l.dir, entry.LeasesFile)).TryHold(l.entry.Lease)
		check(l.T, err)
		l.Cleanup(held.Release)
	}},
}

func TestTheUnusualIsLeftToTheWholeProgram(t *testing.T) {
	for _, c := range left {
		t.Run(c.name, func(t *testing.T) {
			l := c.lab(t)
			call := &headstart.Call{}
			if call.Ask(l.words(c.line), l.environ()) {
				t.Error("it is not")
			}
			if call.Holds() {
				t.Error("it holds something")
			}
		})
	}
}

// An older record has no entry to read, and a malformed one none that is one.
func TestRecordsWithoutAnEntry(t *testing.T) {
	l := newLab(t)
	whole := l.entry.Format()
	for _, record := range []string{"", "{}", "entry 3\na\x00b{}", "entry/2 9999\n", "entry/2 x\n", "entry/2 3\na\x00b", whole[:len(whole)-1]} {
		l.write(filepath.Join(entry.RecordsDir, name+entry.RecordKind), record)
		if (&headstart.Call{}).Ask(l.words("exec some true"), l.environ()) {
			t.Errorf("%q has an entry", record)
		}
	}
}

func TestStateDirectories(t *testing.T) {
	l := newLab(t)
	check(t, os.Symlink(l.dir, filepath.Join(l.dir, ".atoll")))
	for _, c := range []struct {
		environ []string
		want    bool
	}{
		{[]string{"ATOLL_STATE_DIR=" + l.dir}, true},
		{[]string{"HOME=" + l.dir}, true},
		{[]string{"ATOLL_STATE_DIR=", "HOME=" + l.dir}, true},
		{[]string{"ATOLL_STATE_DIR=/nowhere", "HOME=" + l.dir}, false},
		{[]string{"ATOLL_STATE_DIR=" + l.dir + "/../" + filepath.Base(l.dir)}, false},
		{[]string{"ATOLL_STATE_DIR=" + strings.TrimPrefix(l.dir, "/")}, false},
		{[]string{"HOME="}, false},
		{nil, false},
	} {
		call := &headstart.Call{}
		if got := call.Prepare(l.words("exec some true"), headstart.NewVector(c.environ...)); got != c.want {
			t.Errorf("%q: %v", c.environ, got)
		}
		call.Close()
	}
}

// TestWithoutAHeap: where there is none yet, nothing may be taken from it,
// whatever the line is.
func TestWithoutAHeap(t *testing.T) {
	call := &headstart.Call{}
	run := func(t *testing.T, l *lab, line string) {
		t.Helper()
		args, environ := l.words(line), l.environ()
		if n := testing.AllocsPerRun(5, func() {
			call.Prepare(args, environ)
			call.Close()
			call.Reset()
		}); n != 0 {
			t.Errorf("%q takes from the heap %v times", args, n)
		}
	}
	for _, line := range taken {
		l := newLab(t)
		l.write("env", "FROM=file\n")
		l.write("more", "LANG=en\nlower=x\n")
		run(t, l, line)
	}
	for _, c := range left {
		t.Run(c.name, func(t *testing.T) {
			l := c.lab(t)
			run(t, l, c.line)
		})
	}
}

func TestStack(t *testing.T) {
	for _, args := range [][]string{nil, {"docker"}, {"docker", "", "exec"}} {
		for _, environ := range [][]string{nil, {"A=1", ""}} {
			gotArgs, gotEnviron := headstart.Stack(t, args, environ)
			if diff := cmp.Diff([][]string{args, environ}, [][]string{gotArgs, gotEnviron}); diff != "" {
				t.Error(diff)
			}
		}
	}
}
