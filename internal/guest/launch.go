package guest

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	shell       = "/bin/sh"
	// oomScore puts the sandbox's processes before the guest when memory runs
	// out. Whoever lowers it again only reaches the guest's own score.
	oomScore = "500"
)

// checkExec refuses what cannot be started. The host has checked the same;
// this is for a host that has not.
func checkExec(e *wire.Exec) error {
	switch {
	case !wire.ValidID(e.ID):
		return wire.Fail(wire.CodeInvalid, "the process id is malformed")
	case (len(e.Argv) == 0) == (e.Shell == ""):
		return wire.Fail(wire.CodeInvalid, "exactly one of argv and shell must be given")
	case len(e.Argv) > 0 && e.Argv[0] == "":
		return wire.Fail(wire.CodeInvalid, "the program's name is empty")
	case e.TimeoutMs < 0 || e.GraceMs < 0:
		return wire.Fail(wire.CodeInvalid, "a time is negative")
	}
	return nil
}

// launch starts a process with everything that follows it.
func (s *server) launch(e *wire.Exec) (*process, error) {
	attr := attrOf(e)
	var err error
	if attr.Path, err = findProgram(attr); err != nil {
		return nil, err
	}
	p := &process{
		id: e.ID, out: newOutput(),
		tree:    tree{lineage: s.lineage, mark: s.lineage.next(), alone: alone()},
		timeout: time.Duration(e.TimeoutMs) * time.Millisecond, grace: graceOf(e.GraceMs), endTree: e.EndTree,
		done: make(chan struct{}), ending: make(chan struct{}),
	}
	attr.Limits = s.lineage.limits(p.tree.mark)
	pipes, err := openPipes(e.Stdin)
	if err != nil {
		return nil, wire.Fail(wire.CodeExhausted, "no descriptors are left in the sandbox: "+err.Error())
	}
	defer pipes.closeTheirs()
	attr.Files = pipes.theirs
	p.started = time.Now()
	pid, main, err := s.reaper.start(attr)
	if err != nil {
		pipes.closeOurs()
		return nil, startError(attr, err)
	}
	p.pid = pid
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte(oomScore), 0)
	if pipes.ours[0] != nil {
		p.stdin = &stdin{file: pipes.ours[0]}
	}
	p.pumps = [2]*pump{newPump(pipes.ours[1], p.out, 0), newPump(pipes.ours[2], p.out, 1)}
	s.keep(p.id, p)
	go p.supervise(main)
	return p, nil
}

func attrOf(e *wire.Exec) *spawn.Attr {
	attr := &spawn.Attr{Argv: wire.Strings(e.Argv), Env: wire.Strings(e.Env), Dir: string(e.Dir)}
	if e.Shell != "" {
		attr.Argv = []string{shell, "-lc", string(e.Shell)}
	}
	if _, ok := lookup(attr.Env, "PATH"); !ok {
		attr.Env = append(attr.Env, "PATH="+defaultPath)
	}
	return attr
}

func lookup(env []string, name string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// findProgram searches the PATH that the program itself will see.
func findProgram(attr *spawn.Attr) (string, error) {
	name := attr.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path, _ := lookup(attr.Env, "PATH")
	var found error = unix.ENOENT
	for _, dir := range strings.Split(path, ":") {
		file := dir + "/" + name
		if dir == "" {
			file = "./" + name
		}
		err := executable(attr.Dir, file)
		if err == nil {
			return file, nil
		}
		if err == unix.EACCES {
			found = err
		}
	}
	return "", startError(attr, &spawn.Error{Stage: spawn.StageExec, Errno: found.(syscall.Errno)})
}

// executable reports why file, seen from dir, cannot be run.
func executable(dir, file string) error {
	if dir != "" && !strings.HasPrefix(file, "/") {
		file = dir + "/" + file
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EACCES
	}
	return unix.Access(file, unix.X_OK)
}

// startError tells the host why a process did not start.
func startError(attr *spawn.Attr, err error) error {
	failure, ok := errors.AsType[*spawn.Error](err)
	if !ok {
		return err
	}
	program := strconv.Quote(attr.Argv[0])
	switch {
	case failure.Stage == spawn.StageFork:
		return wire.Fail(wire.CodeExhausted, "the sandbox has no room for another process: "+failure.Errno.Error())
	case failure.Stage == spawn.StageDir:
		return wire.Fail(wire.CodeNoDirectory, "working directory "+strconv.Quote(attr.Dir)+": "+failure.Errno.Error())
	case failure.Stage != spawn.StageExec:
		return wire.Fail(wire.CodeInternal, failure.Error())
	case failure.Errno == unix.E2BIG:
		return wire.Fail(wire.CodeInvalid, program+": arguments and environment are too long")
	case failure.Errno == unix.ENOMEM || failure.Errno == unix.EAGAIN:
		return wire.Fail(wire.CodeExhausted, program+": "+failure.Errno.Error())
	case failure.Errno == unix.ENOENT && attr.Path != "" && executable(attr.Dir, attr.Path) == nil:
		return wire.Fail(wire.CodeNotExecutable, program+": the program is there, but its interpreter is not")
	case failure.Errno == unix.ENOENT || failure.Errno == unix.ENOTDIR:
		return wire.Fail(wire.CodeNotFound, program+": not found in the sandbox")
	}
	return wire.Fail(wire.CodeNotExecutable, program+": "+failure.Errno.Error())
}

// pipes are the ends of a process's three standard streams.
type pipes struct {
	theirs [3]int
	ours   [3]*os.File
}

func openPipes(stdin bool) (*pipes, error) {
	p := &pipes{theirs: [3]int{-1, -1, -1}}
	for i := range p.theirs {
		if err := p.open(i, stdin); err != nil {
			p.closeTheirs()
			p.closeOurs()
			return nil, err
		}
	}
	return p, nil
}

func (p *pipes) open(i int, stdin bool) (err error) {
	if i == 0 && !stdin {
		p.theirs[0], err = unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	}
	var fd [2]int
	if err := unix.Pipe2(fd[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	our, their := fd[0], fd[1]
	if i == 0 {
		our, their = fd[1], fd[0]
	}
	// Only our end: theirs must behave as programs expect.
	_ = unix.SetNonblock(our, true)
	p.theirs[i], p.ours[i] = their, os.NewFile(uintptr(our), "pipe")
	return nil
}

func (p *pipes) closeTheirs() {
	for _, fd := range p.theirs {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (p *pipes) closeOurs() {
	for _, file := range p.ours {
		if file != nil {
			file.Close()
		}
	}
}
