package guest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/guest/spawn"
	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	shell       = "/bin/sh"
)

// attrOf returns the attributes of the process that a request describes.
func attrOf(e *wire.Exec) *spawn.Attr {
	attr := &spawn.Attr{Argv: wire.Strings(e.Argv), Env: wire.Strings(e.Env), Dir: string(e.Dir), TTY: e.TTY != nil}
	if e.Shell != "" {
		attr.Argv = []string{shell, "-lc", string(e.Shell)}
	}
	if _, ok := lookup(attr.Env, "PATH"); !ok {
		attr.Env = append(attr.Env, "PATH="+defaultPath)
	}
	return attr
}

func lookup(env []string, name string) (string, bool) {
	for _, entry := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// findProgram searches the PATH of the new process for the program.
func findProgram(attr *spawn.Attr) (string, error) {
	name := attr.Argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path, _ := lookup(attr.Env, "PATH")
	reason := unix.ENOENT
	for dir := range strings.SplitSeq(path, ":") {
		file := dir + "/" + name
		if dir == "" {
			file = "./" + name
		}
		err := executable(attr.Dir, file)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, unix.EACCES) {
			reason = unix.EACCES
		}
	}
	return "", startError(attr, &spawn.Error{Stage: spawn.StageExec, Errno: reason})
}

// executable returns why file, relative to dir, cannot be run.
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

// startError returns the host's error for a process that did not start.
func startError(attr *spawn.Attr, err error) error {
	failure, ok := errors.AsType[*spawn.Error](err)
	if !ok {
		return err
	}
	reason := failure.Errno.Error()
	switch failure.Stage {
	case spawn.StageFork:
		return wire.Fail(wire.CodeExhausted, "the sandbox has no room for another process: "+reason)
	case spawn.StageDir:
		return wire.Fail(wire.CodeNoDirectory, "working directory "+strconv.Quote(attr.Dir)+": "+reason)
	case spawn.StageExec:
		return execError(attr, failure.Errno)
	case spawn.StageStalled:
		return wire.Fail(wire.CodeExhausted, "something in the sandbox keeps processes from starting")
	}
	return wire.Fail(wire.CodeInternal, failure.Error())
}

// execError returns the host's error for a program that did not run.
func execError(attr *spawn.Attr, errno syscall.Errno) error {
	program := strconv.Quote(attr.Argv[0]) + ": "
	switch errno {
	case unix.E2BIG:
		return wire.Fail(wire.CodeInvalid, program+"arguments and environment are too long")
	case unix.ENOMEM, unix.EAGAIN, unix.EMFILE, unix.ENFILE:
		return wire.Fail(wire.CodeExhausted, program+errno.Error())
	case unix.ENOENT:
		if attr.Path != "" && executable(attr.Dir, attr.Path) == nil {
			return wire.Fail(wire.CodeNotExecutable, program+"the program is there, but its interpreter is not")
		}
		return wire.Fail(wire.CodeNotFound, program+"not found in the sandbox")
	case unix.ENOTDIR:
		return wire.Fail(wire.CodeNotFound, program+"not found in the sandbox")
	}
	return wire.Fail(wire.CodeNotExecutable, program+errno.Error())
}
