package sandboxcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/sandbox/verify"
)

type verifyOptions struct {
	console.SubjectFlags
	asJSON bool
}

func newVerifyCommand(e *env) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Try the walls of a sandbox from inside, and compare with what the policy promises",
		Long: `Try the walls of a sandbox from inside, and compare with what the policy promises.

A probe runs in the live sandbox like any other command there: it looks at
privileges, refused system calls, namespaces, files, mounts, network, metadata
address, DNS, egress, processes, limits, devices, sockets, the guest and, of a
browser, the renderers of open pages. It
changes nothing and sends nothing beyond the sandbox. Privileges, namespaces and limits are also looked at
from outside, where this host can. No answer, or half of one, is an error.

Without NAME the session's sandboxes are made if needed; NAME is a sandbox that
runs, as list shows it. The exit code is 1 if any promise is not kept.`,
		Example: `  atoll sandbox verify
  atoll sandbox verify --agent work --json
  atoll sandbox verify openclaw-sbx-agent-main-f331f052`,
		Args: console.AtMostOne("sandbox"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(cmd); err != nil {
				return err
			}
			if o.SubjectFlags != (console.SubjectFlags{}) && len(args) > 0 {
				return console.Usage(cmd, errors.New("NAME says which sandbox already: --agent, --session and --account go without it"))
			}
			return runVerify(cmd.Context(), e, o, args)
		},
	}
	o.Add(cmd)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func verifyNamed(ctx context.Context, a *app.App, word string) ([]provide.Verified, error) {
	name, err := pickSandbox(ctx, a, word)
	if err != nil {
		return nil, err
	}
	return a.VerifyNamed(ctx, name)
}

func runVerify(ctx context.Context, e *env, o verifyOptions, args []string) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	done := e.Progress("trying the walls")
	var found []provide.Verified
	if len(args) > 0 {
		found, err = verifyNamed(ctx, a, args[0])
	} else {
		found, err = a.Verify(ctx, o.Who())
	}
	done()
	if err != nil {
		return err
	}
	if err := e.showVerified(found, o.asJSON); err != nil {
		return err
	}
	for _, v := range found {
		if !v.OK {
			return console.WithCode(console.ExitFailure, nil)
		}
	}
	return nil
}

func (e *env) showVerified(found []provide.Verified, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(map[string]any{"sandboxes": found})
	}
	for i, v := range found {
		if i > 0 {
			fmt.Fprintln(e.Out)
		}
		e.printVerified(v)
	}
	return nil
}

func (e *env) printVerified(v provide.Verified) {
	s := e.Style()
	gaps := 0
	t := console.NewTable("", "RING", "WHAT", "PROMISED", "FOUND")
	for _, c := range v.Checks {
		mark := map[verify.Status]string{verify.OK: "ok", verify.Gap: "GAP", verify.Note: "note"}[c.Status]
		if c.Status == verify.Gap {
			gaps++
		}
		t.Add(mark, c.Ring, c.Name, console.Shortened(c.Promised, commandWidth), c.Found)
	}
	t.Print(e.Out)
	if gaps == 0 {
		fmt.Fprintln(e.Out, s.Good("Every promise holds")+" in "+s.Bold(console.Printable(v.Sandbox))+" ("+v.Backend+", image "+console.Printable(v.Image)+").")
		return
	}
	fmt.Fprintln(e.Out, s.Alarm(fmt.Sprintf("%d of %d promises do not hold", gaps, len(v.Checks)))+" in "+s.Bold(console.Printable(v.Sandbox))+" ("+v.Backend+", image "+console.Printable(v.Image)+").")
	fmt.Fprintln(e.Out, "hint: "+v.Hint)
}
