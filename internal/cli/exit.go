package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The exit codes of every verb but run, whose code is the command's.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2 // usage or configuration
	exitDenied      = 3 // denied by policy
	exitNoSandbox   = 4 // a sandbox could not be provided
	exitTimeout     = 124
	exitSignal      = 128 // and the number of the signal that ended the program
	exitOutOfMemory = 137

	// Only atoll run: its own failures, so that they cannot be mistaken for the
	// command's.
	exitRunFailure    = 125
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitError carries the exit code of an error, or of a silent end.
type exitError struct {
	code int
	err  error // nil: everything was said already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// withCode makes err end the program with code.
func withCode(code int, err error) error { return &exitError{code, err} }

// usage is an error of the command line itself.
func usage(cmd *cobra.Command, err error) error {
	err = flagProblem(cmd, err)
	return withCode(exitUsage, errhint.With(err, cmp.Or(errhint.Of(err), "see `"+cmd.CommandPath()+" --help`")))
}

func unknownVerb(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("%s has no command %q", cmd.CommandPath(), word)
	if meant := suggestion(cmd, word); meant != "" {
		return withCode(exitUsage, errhint.With(err, "did you mean "+meant+"?"))
	}
	return usage(cmd, err)
}

// suggestion is the command that a wrong word was probably meant to be: one of
// another group by the same name, or the one whose name differs least.
func suggestion(cmd *cobra.Command, word string) string {
	if !cmd.HasParent() {
		if paths := inGroups(cmd, word); len(paths) > 0 {
			return strings.Join(paths, " or ")
		}
	}
	for distance := 1; distance <= min(2, len(word)/2); distance++ {
		cmd.SuggestionsMinimumDistance = distance
		if near := cmd.SuggestionsFor(word); len(near) > 0 {
			return "`" + cmd.CommandPath() + " " + near[0] + "`"
		}
	}
	return ""
}

// finish is the one place where an error becomes a message and an exit code.
func (e *env) finish(ctx context.Context, err error) int {
	if code, ok := e.endedFromOutside(ctx, err); ok {
		return code
	}
	if err == nil {
		err = e.out.err // what was to be printed is lost
	}
	if err == nil {
		return exitOK
	}
	if exit, ok := errors.AsType[*exitError](err); !ok || exit.err != nil {
		e.report(err)
	}
	return code(err)
}

// endedFromOutside is the exit code of an end that needs no words: whoever
// pressed Ctrl-C or closed the pipe knows.
func (e *env) endedFromOutside(ctx context.Context, err error) (code int, ok bool) {
	if errors.Is(e.out.err, syscall.EPIPE) {
		return exitSignal + int(syscall.SIGPIPE), true
	}
	by, ok := errors.AsType[signalled](context.Cause(ctx))
	if !ok || !errors.Is(err, context.Canceled) {
		return 0, false
	}
	return exitSignal + int(by.Signal), true
}

// report prints one line of what and where, and one of what to do.
func (e *env) report(err error) {
	if problems, ok := errors.AsType[config.Problems](err); ok {
		for _, p := range problems {
			fmt.Fprintln(e.Err, "error: "+problemLine(p))
		}
		return
	}
	fmt.Fprintln(e.Err, "error: "+indented(err.Error()))
	if hint := errhint.Of(err); hint != "" {
		fmt.Fprintln(e.Err, "hint: "+printable(hint))
	}
}

// code is the exit code of an error; the first row that fits counts.
func code(err error) int {
	if exit, ok := errors.AsType[*exitError](err); ok {
		return exit.code
	}
	if _, ok := errors.AsType[config.Problems](err); ok {
		return exitUsage
	}
	for _, row := range []struct {
		kind error
		code int
	}{
		{sandbox.ErrDenied, exitDenied},
		{context.DeadlineExceeded, exitTimeout},
	} {
		if errors.Is(err, row.kind) {
			return row.code
		}
	}
	if _, ok := errors.AsType[*sandbox.ProvisionError](err); ok {
		return exitNoSandbox
	}
	return exitFailure
}
