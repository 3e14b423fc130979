package runcmd

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
)

// foreignFlag is a flag that scripts written for `openclaw agent` may give. It is taken, and named in a notice.
type foreignFlag struct {
	name, short string
	isSwitch    bool
	instead     string // what happens
}

const noChannels = "there are no channels here, the answer is printed"

func foreignFlags() []foreignFlag {
	return []foreignFlag{
		{name: "to", short: "t", instead: "--session chooses the session"},
		{name: "channel", instead: noChannels},
		{name: "reply-to", instead: noChannels},
		{name: "reply-channel", instead: noChannels},
		{name: "reply-account", instead: noChannels},
		{name: "deliver", isSwitch: true, instead: noChannels},
	}
}

func addForeignFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, f := range foreignFlags() {
		if f.isSwitch {
			flags.BoolP(f.name, f.short, false, "accepted and not acted on")
		} else {
			flags.StringP(f.name, f.short, "", "accepted and not acted on")
		}
		_ = flags.MarkHidden(f.name)
	}
}

func (e *env) tellForeignFlags(cmd *cobra.Command) {
	for _, f := range foreignFlags() {
		if cmd.Flags().Changed(f.name) {
			e.Notice("--" + f.name + " is not acted on: " + f.instead)
		}
	}
}

// agentArgs takes no arguments, but for the on and off that scripts give to
// --verbose.
func (e *env) agentArgs(cmd *cobra.Command, args []string) error {
	if !cmd.Flags().Changed("verbose") || len(args) != 1 {
		return console.NoArgs(cmd, args)
	}
	switch args[0] {
	case "on":
	case "off":
		e.Verbose = false
	default:
		return console.Usage(cmd, errors.New("--verbose is on or off"))
	}
	return nil
}
