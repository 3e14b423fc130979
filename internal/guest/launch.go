package guest

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/proc"
	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/wire"
)

// checkExec refuses a request that cannot be started. The host checks the same before it
// sends one.
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

// launch starts a process and waits until its program runs. The caller calls supervise.
func (s *server) launch(e *wire.Exec, by *hostWire) (*process, error) {
	p, err := s.begin(e, by)
	if err == nil {
		err = s.confirm(p)
	}
	if err != nil {
		return nil, err
	}
	proc.PreferForOOM(p.pid)
	return p, nil
}

// begin starts a process under a new id. It does not wait until its program runs: confirm
// does.
func (s *server) begin(e *wire.Exec, by *hostWire) (p *process, err error) {
	if err := checkExec(e); err != nil {
		return nil, err
	}
	if err := s.checkOther(e); err != nil {
		return nil, err
	}
	if err := s.table.claim(e.ID); err != nil {
		return nil, err
	}
	if s.termination.begun() { // read after the claim: what is in the table is ended
		err = wire.Fail(wire.CodeTerminated, "the sandbox is about to end")
	} else if by.fenced.Load() { // read after the claim, too: a newer wire that asks for the id now waits
		err = wire.Fail(wire.CodeStale, "the wire is not valid any more")
	} else {
		s.withSlot(func() { p, err = s.start(e) })
	}
	if err != nil {
		s.table.forget(e.ID)
		return nil, err
	}
	s.table.keep(p)
	s.noteStart()
	return p, nil
}

// checkOther refuses to start a process whose While process has ended.
func (s *server) checkOther(e *wire.Exec) error {
	if e.While == "" {
		return nil
	}
	if other, err := s.table.find(e.While); err != nil || other.gone() {
		return wire.Fail(wire.CodeOver, "process "+e.While+" is over")
	}
	return nil
}

// gone reports whether the process does not run any more, even if its result is not final
// yet: the host that ended it has its answer by then.
func (p *process) gone() bool { return p.over() || p.isEnding() && !p.tree.Has(p.pid) }

// start starts the process.
func (s *server) start(e *wire.Exec) (*process, error) {
	attr := attrOf(e)
	var err error
	if attr.Path, err = findProgram(attr); err != nil {
		return nil, err
	}
	stdio, err := openStdio(e, s.devNull)
	if err != nil {
		return nil, exhausted(err)
	}
	defer stdio.closeChild()
	mark, started, err := s.grants.mark(e.Grant)
	if err != nil {
		stdio.closeGuest()
		return nil, err
	}
	defer started()
	p := newProcess(e, attr, stdio)
	p.mark, p.tree = mark, s.walker.Tree(proc.OneExec(mark))
	attr.Files, attr.Limits, attr.ResetSignals, attr.Join = stdio.child, s.limits(mark), s.unmasked, s.join
	p.memory, p.kills = s.memory, s.memory.recent()
	p.pids, p.refused = s.pids, s.pids.Refused()
	p.quota, p.limits = s.quota, attr.Limits
	if p.child, p.main, err = s.reaper.Begin(attr, mark); err != nil {
		stdio.closeGuest()
		return nil, s.startFailed(attr, err)
	}
	p.pid, p.attr = p.child.PID, attr
	return p, nil
}

// startFailed returns why a process could not be started. If the limit of processes was
// reached, it kills what ended commands have left.
func (s *server) startFailed(attr *spawn.Attr, err error) error {
	if !errors.Is(err, unix.EAGAIN) {
		return startError(attr, err)
	}
	if s.pids.KillLeftovers() {
		return wire.Fail(wire.CodeExhausted, "the sandbox had no room for another process: what earlier commands left running was ended; try again")
	}
	return wire.Fail(wire.CodeExhausted, "the sandbox has no room for another process: end a running command, or raise docker.pidsLimit")
}

// confirm waits until the program of a process runs. If it fails there is no process.
func (s *server) confirm(p *process) (err error) {
	if p.child == nil {
		return nil // known already
	}
	s.withSlot(func() { err = p.child.Await() })
	return s.settle(p, err)
}

// settle records the result of the start of a process.
func (s *server) settle(p *process, err error) error {
	if err != nil {
		return s.failed(p, err)
	}
	p.child, p.attr = nil, nil
	return nil
}

// failed removes a process whose program could not be run, and returns why. A host that
// has attached to it meanwhile gets the same error.
func (s *server) failed(p *process, why error) error {
	p.failure = startError(p.attr, why)
	p.stdio.closeGuest()
	p.finish(proc.Exit{}, false, false)
	s.table.forget(p.id)
	return p.failure
}

// exhausted returns the error of a guest that has no descriptors left.
func exhausted(err error) error {
	if e := wire.AsError(err); e.Code != wire.CodeInternal {
		return e
	}
	return wire.Fail(wire.CodeExhausted, "no descriptors are left in the sandbox: "+err.Error())
}

func newProcess(e *wire.Exec, attr *spawn.Attr, stdio *stdio) *process {
	p := &process{
		id: e.ID, command: summary(attr.Argv, e), stdio: stdio, started: time.Now(),
		timeout: time.Duration(min(e.TimeoutMs, maxTimeout.Milliseconds())) * time.Millisecond, grace: graceOf(e.GraceMs),
		endTree: e.EndTree, background: e.Background,
		done: make(chan struct{}), ending: make(chan struct{}),
	}
	if e.Background {
		p.out = newLog()
		if e.Followed {
			p.out.awaitFollower(wire.FollowWait)
		}
		return p
	}
	p.out = newOutput()
	if e.Cap != nil {
		p.out.rings[0].Cap(e.Cap.Head, e.Cap.Tail)
		p.out.rings[1].Cap(e.Cap.Head, e.Cap.Tail)
	}
	return p
}

// summary returns the command line, shortened for display.
func summary(argv []string, e *wire.Exec) string {
	line := string(e.Shell)
	if line == "" {
		line = strings.Join(argv, " ")
	}
	return line[:min(len(line), wire.MaxCommand)]
}

func graceOf(ms int64) time.Duration {
	if ms <= 0 {
		return defaultGrace
	}
	return time.Duration(min(ms, maxGrace.Milliseconds())) * time.Millisecond
}

// limits returns the resource limits of a new process: its mark, the size of its
// files, and the number of open files that the guest itself was started with.
func (s *server) limits(m proc.Mark) []spawn.Limit {
	limits := append(s.lineage.Limits(m), s.quota.fileSize()...)
	if s.openFiles.Max > 0 {
		limits = append(limits, spawn.Limit{Resource: unix.RLIMIT_NOFILE, Soft: s.openFiles.Cur, Hard: s.openFiles.Max})
	}
	return limits
}
