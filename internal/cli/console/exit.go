package console

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
	ExitFailure     = 1
	ExitUsage       = 2 // usage or configuration
	ExitDenied      = 3 // denied by policy
	ExitNoSandbox   = 4 // a sandbox could not be provided
	ExitTimeout     = 124
	ExitSignal      = 128 // and the number of the signal that ended the program
	ExitOutOfMemory = 137

	// Only atoll run: its own failures, so that they cannot be mistaken for the
	// command's.
	ExitRunFailure    = 125
	ExitNotExecutable = 126
	ExitNotFound      = 127
)

// ExitError carries the exit code of an error, or of a silent end.
type ExitError struct {
	Code int
	Err  error // nil: everything was said already
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// WithCode makes err end the program with code.
func WithCode(code int, err error) error { return &ExitError{code, err} }

// Usage is an error of the command line itself.
func Usage(cmd *cobra.Command, err error) error {
	err = flagProblem(cmd, err)
	return WithCode(ExitUsage, errhint.With(err, cmp.Or(errhint.Of(err), "see `"+cmd.CommandPath()+" --help`")))
}

// UnknownVerb is the error of a word that is no verb, with the nearest one.
func UnknownVerb(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("%s has no command %q", cmd.CommandPath(), word)
	if meant := suggestion(cmd, word); meant != "" {
		return WithCode(ExitUsage, errhint.With(err, "did you mean "+meant+"?"))
	}
	return Usage(cmd, err)
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
			return "`" + cmd.CommandPath() + " " + nearest(word, near) + "`"
		}
	}
	return ""
}

// Finish is the one place where an error becomes a message and an exit code.
func (e *Env) Finish(ctx context.Context, err error) int {
	if code, ok := e.endedFromOutside(ctx, err); ok {
		return code
	}
	if err == nil {
		err = e.Out.Err // what was to be printed is lost
	}
	if err == nil {
		return exitOK
	}
	if exit, ok := errors.AsType[*ExitError](err); !ok || exit.Err != nil {
		e.Report(err)
	}
	return Code(err)
}

// endedFromOutside returns the exit code after Ctrl-C or a closed pipe, which print
// no message.
func (e *Env) endedFromOutside(ctx context.Context, err error) (code int, ok bool) {
	if errors.Is(e.Out.Err, syscall.EPIPE) {
		return ExitSignal + int(syscall.SIGPIPE), true
	}
	by, ok := errors.AsType[signalled](context.Cause(ctx))
	if !ok || !errors.Is(err, context.Canceled) {
		return 0, false
	}
	return ExitSignal + int(by.Signal), true
}

// Report prints one line of what and where, and one of what to do.
func (e *Env) Report(err error) {
	if problems, ok := errors.AsType[config.Problems](err); ok {
		for _, p := range problems {
			fmt.Fprintln(e.Err, "error: "+ProblemLine(p))
		}
		return
	}
	fmt.Fprintln(e.Err, "error: "+indented(err.Error()))
	if hint := errhint.Of(err); hint != "" {
		fmt.Fprintln(e.Err, "hint: "+Printable(hint))
	}
}

// Code is the exit code of an error; the first row that fits counts.
func Code(err error) int {
	if exit, ok := errors.AsType[*ExitError](err); ok {
		return exit.Code
	}
	if _, ok := errors.AsType[config.Problems](err); ok {
		return ExitUsage
	}
	for _, row := range []struct {
		kind error
		code int
	}{
		{sandbox.ErrDenied, ExitDenied},
		{context.DeadlineExceeded, ExitTimeout},
	} {
		if errors.Is(err, row.kind) {
			return row.code
		}
	}
	if _, ok := errors.AsType[*sandbox.ProvisionError](err); ok {
		return ExitNoSandbox
	}
	return ExitFailure
}
