package cli

import "github.com/spf13/cobra"

// The checks of positional arguments, as usage errors of ours.

var noArgs = asUsage(cobra.NoArgs)

func maximumArgs(n int) cobra.PositionalArgs { return asUsage(cobra.MaximumNArgs(n)) }
func minimumArgs(n int) cobra.PositionalArgs { return asUsage(cobra.MinimumNArgs(n)) }
func exactArgs(n int) cobra.PositionalArgs   { return asUsage(cobra.ExactArgs(n)) }

func asUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(cmd, err)
		}
		return nil
	}
}
