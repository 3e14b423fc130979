package runcmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// demoTask is what the demonstration's agent is asked to do if nothing is said.
const demoTask = "Write a program that adds two numbers, with a test, and commit it."

// NewDemoCommand returns the command `atoll demo`.
func NewDemoCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	o := agentOptions{demo: true}
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Show an agent at work in a sandbox, without any model or key",
		Long: `Show an agent at work. Everything is as with atoll agent (the sandbox, the tools,
the proxy, the receipt), but for the model: a script answers, which does the same
small task whatever it is asked. No key is needed, and nothing is sent anywhere.`,
		Example: `  atoll demo
  atoll demo --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.local = true
			if !cmd.Flags().Changed("message") && !cmd.Flags().Changed("message-file") {
				if err := cmd.Flags().Set("message", demoTask); err != nil {
					return err
				}
			}
			err := runAgent(cmd, e, &o)
			return asAgentError(errors.Join(e.sayNotStarted(&o, err), err))
		},
	}
	o.add(cmd)
	for _, name := range []string{"model", "thinking", "local"} { // the script does not look at them
		_ = cmd.Flags().MarkHidden(name)
	}
	return cmd
}
