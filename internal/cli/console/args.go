package console

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/errhint"
)

// The checks of positional arguments.

// NoArgs refuses positional arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(cmd, fmt.Errorf("unexpected argument %q", args[0]))
	}
	return nil
}

// AtMostOne allows one argument of a kind, or none.
func AtMostOne(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usage(cmd, fmt.Errorf("only one %s can be given, found also %q", kind, args[1]))
		}
		return nil
	}
}

// ExactlyOne wants one argument of a kind.
func ExactlyOne(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usage(cmd, fmt.Errorf("no %s was given", kind))
		}
		return AtMostOne(kind)(cmd, args)
	}
}

// SomeCommand wants a command to run inside.
func SomeCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return WithCode(ExitUsage, errhint.With(errors.New("no command was given"), "write it after --, as in `"+cmd.CommandPath()+" -- ls -la`"))
}
