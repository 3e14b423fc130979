package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/config"
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
	return withCode(exitUsage, advice.With(err, "see `"+cmd.CommandPath()+" --help`"))
}

func unknownVerb(cmd *cobra.Command, word string) error {
	err := fmt.Errorf("%s has no command %q", cmd.CommandPath(), word)
	if near := cmd.SuggestionsFor(word); len(near) > 0 {
		return withCode(exitUsage, advice.With(err, "did you mean `"+cmd.CommandPath()+" "+near[0]+"`?"))
	}
	return usage(cmd, err)
}

// finish is the one place where an error becomes a message and an exit code.
func (e *env) finish(err error) int {
	if err == nil {
		return exitOK
	}
	if exit, ok := errors.AsType[*exitError](err); !ok || exit.err != nil {
		e.report(err)
	}
	return code(err)
}

// report prints one line of what and where, and one of what to do.
func (e *env) report(err error) {
	if problems, ok := errors.AsType[config.Problems](err); ok {
		for _, p := range problems {
			fmt.Fprintln(e.Err, e.line(p))
		}
		return
	}
	fmt.Fprintln(e.Err, "error: "+strings.ReplaceAll(printable(err.Error()), "\n", "\n  "))
	if hint := advice.Of(err); hint != "" {
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

// printable escapes what could move a terminal's cursor or forge a line: parts
// of messages come from inside sandboxes.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) && r != 0x202e && r != 0xfffd {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
