package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/errhint"
)

// The checks of positional arguments.

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd, fmt.Errorf("unexpected argument %q", args[0]))
	}
	return nil
}

// atMostOne allows one argument of a kind, or none.
func atMostOne(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usage(cmd, fmt.Errorf("only one %s can be given, found also %q", kind, args[1]))
		}
		return nil
	}
}

// exactlyOne wants one argument of a kind.
func exactlyOne(kind string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, fmt.Errorf("no %s was given", kind))
		}
		return atMostOne(kind)(cmd, args)
	}
}

// someCommand wants a command to run inside.
func someCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return withCode(exitUsage, errhint.With(errors.New("no command was given"), "write it after --, as in `"+cmd.CommandPath()+" -- ls -la`"))
}
