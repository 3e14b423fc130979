package machine

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/wire"
	"github.com/atoll-run/atoll/internal/wire/replay"
)

// Command is something to run in the sandbox. Exactly one of Argv and Shell is
// given.
type Command struct {
	Argv  []string
	Shell string   // run by /bin/sh -lc
	Env   []string // "NAME=value", the whole environment; PATH is added if missing
	Dir   string   // "" is the sandbox's own working directory

	Stdin          io.Reader // nil: empty
	Stdout, Stderr io.Writer // nil: discarded

	// TTY gives the command a terminal of this size; both its outputs then come
	// as Stdout. Sizes sent to Resize change it.
	TTY    *Size
	Resize <-chan Size

	Timeout time.Duration // 0: none
	Grace   time.Duration // between SIGTERM and SIGKILL; 0: 2 s
	// EndTree ends whatever the command leaves running in the background when
	// it exits. A timeout or a cancelled context always does.
	EndTree bool
	// OutputLimit bounds what is written to each of Stdout and Stderr. Of a
	// longer output the beginning and the end are kept, half each, but of the
	// end at most MaxTail; it comes when the command is over. 0: no limit.
	OutputLimit int64
	// ID names a command that Exec runs, for Signal and Wait; "" is a random one.
	ID string
	// Grant is the id of the open grant that the command is started under; ""
	// is none. The end of the grant ends it and all its descendants.
	Grant string
	// While is the id of a process that must run when the command is started; ""
	// is none. ErrOver if it does not.
	While string
	// Followed makes a command that Start starts wait with output that would be lost until
	// Follow is called, for wire.FollowWait at most. ErrUnsupported by an older guest.
	Followed bool
}

// MaxTail is how much of the end of a long output can be kept.
const MaxTail = replay.MaxTail

// Size is that of a terminal.
type Size struct{ Rows, Cols uint16 }

// Result is how a command ended.
type Result struct {
	ExitCode      int    // 128+n if it was ended by signal n
	Signal        string // "SIGKILL", or ""
	TimedOut      bool
	OOM           bool       // killed because memory ran out
	QuotaExceeded QuotaLimit // ended because the workspace outgrew a limit
	// PidsLimitHit says that the limit of processes was reached, and what commands
	// had left running was ended.
	PidsLimitHit bool
	// Left says that descendants still run and hold its output open.
	Left bool

	User, System time.Duration // CPU time
	MaxRSS       int64         // bytes; never less than the guest's own peak, some MiB
	Duration     time.Duration

	Stdout, Stderr Output
}

// Output is how much a command wrote, and what of it was not passed on.
type Output struct {
	Total int64 // bytes that the command wrote
	Head  int64 // bytes passed on before the first gap
	Lost  int64 // bytes not passed on
}

// check lists everything that is wrong with the command.
func (c *Command) check() error {
	var problems []error
	add := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	add((len(c.Argv) == 0) == (c.Shell == ""), "exactly one of argv and shell must be given")
	add(len(c.Argv) > 0 && c.Argv[0] == "", "the program's name is empty")
	for i, arg := range c.Argv {
		add(strings.IndexByte(arg, 0) >= 0, "argument %d contains a zero byte", i)
	}
	add(strings.IndexByte(c.Shell, 0) >= 0, "the shell command contains a zero byte")
	add(strings.IndexByte(c.Dir, 0) >= 0, "the working directory contains a zero byte")
	for _, entry := range c.Env {
		name, _, ok := strings.Cut(entry, "=")
		add(!ok || name == "", "environment entry %.40q is not NAME=value", entry)
		add(strings.IndexByte(entry, 0) >= 0, "environment variable %.40q contains a zero byte", name)
	}
	add(c.Timeout < 0 || c.Grace < 0, "a time is negative")
	add(c.OutputLimit < 0, "the output limit is negative")
	add(c.ID != "" && !wire.ValidID(c.ID), "the command's id is malformed")
	add(c.Grant != "" && !wire.ValidID(c.Grant), "the grant's id is malformed")
	add(c.While != "" && !wire.ValidID(c.While), "the other process's id is malformed")
	if problems == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalid, errors.Join(problems...))
}

// DefaultGrace is the time between SIGTERM and SIGKILL.
const DefaultGrace = 2 * time.Second

// grace returns Grace, or its default.
func (c *Command) grace() time.Duration {
	if c.Grace == 0 {
		return DefaultGrace
	}
	return c.Grace
}

// request returns the command as a request.
func (c *Command) request(id string) *wire.Request {
	exec := &wire.Exec{
		ID: id, Argv: wire.Texts(c.Argv), Shell: wire.Text(c.Shell), Env: wire.Texts(c.Env), Dir: wire.Text(c.Dir),
		Stdin: c.Stdin != nil, TimeoutMs: wire.Milliseconds(c.Timeout), GraceMs: wire.Milliseconds(c.grace()), EndTree: c.EndTree,
		Grant: c.Grant, While: c.While,
	}
	if c.TTY != nil {
		exec.TTY = &wire.Size{Rows: c.TTY.Rows, Cols: c.TTY.Cols}
	}
	if c.OutputLimit > 0 {
		tail := min(c.OutputLimit/2, MaxTail)
		exec.Cap = &wire.Cap{Head: c.OutputLimit - tail, Tail: tail}
	}
	return &wire.Request{Op: wire.OpExec, Exec: exec}
}

// resultOf converts an exit, with impossible values replaced.
func resultOf(x *wire.Exit) *Result {
	return &Result{
		ExitCode: min(max(x.Code, 0), 255), Signal: signalName(x.Signal),
		TimedOut: x.TimedOut, OOM: x.OOM, QuotaExceeded: quotaLimitOf(x.QuotaExceeded), Left: x.Left, PidsLimitHit: x.PidsLimitHit,
		User: microseconds(x.UserUs), System: microseconds(x.SystemUs), Duration: microseconds(x.DurationUs),
		MaxRSS: max(x.MaxRSS, 0),
	}
}

func microseconds(us int64) time.Duration {
	return time.Duration(min(max(us, 0), math.MaxInt64/1000)) * time.Microsecond
}

// signalName returns s if it looks like the name of a signal, else "unknown".
func signalName(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > 16 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+") != "" {
		return "unknown"
	}
	return s
}
