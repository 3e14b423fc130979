package synccmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
)

func newRefreshCommand(e *env) *cobra.Command {
	return newVerb(e, &options{}, &cobra.Command{
		Use: "refresh", Short: "Show the host's files of now inside", Args: console.NoArgs,
		Example: "  atoll sync refresh\n  atoll sync refresh --json",
		Long: `Begin anew with the host's files as they are now, for everything that the agent has
not changed. What it changed stays. The sandbox must be stopped.`,
	}, func(v *verb, _ []string) error {
		done, err := v.sync.Refresh(v.ctx(), v.request())
		if err != nil {
			return err
		}
		return v.printDone(done, "the sandbox sees the host's files as they are now")
	})
}

func newResetCommand(e *env) *cobra.Command {
	var force bool
	cmd := newVerb(e, &options{}, &cobra.Command{
		Use: "reset", Short: "Discard everything that the agent changed", Args: console.NoArgs,
		Example: "  atoll sync reset\n  atoll sync reset --force --json",
		Long: `Discard everything that the agent changed in this overlay. It is kept aside for 7
days. The sandbox must be stopped; it is made anew by its next use.`,
	}, func(v *verb, _ []string) error { return v.reset(force) })
	cmd.Flags().BoolVar(&force, "force", false, "do not ask")
	return cmd
}

func (v *verb) reset(force bool) error {
	t, err := v.state()
	if err != nil {
		return err
	}
	if !force {
		if err := v.confirm(fmt.Sprintf("This discards what the agent changed in %s (%s).", console.Printable(t.Target), countsText(t))); err != nil {
			return err
		}
	}
	done, err := v.sync.Reset(v.ctx(), v.request())
	if err != nil {
		return err
	}
	return v.printDone(done, "discarded")
}

// confirm asks; no answer means no.
func (v *verb) confirm(text string) error {
	fmt.Fprintln(v.Err, text)
	if v.Confirms("Continue?") {
		return nil
	}
	return errhint.With(errors.New("not confirmed: nothing was discarded"), "answer y, or give --force")
}

func newAcceptTornCommand(e *env) *cobra.Command {
	return newVerb(e, &options{}, &cobra.Command{
		Use: "accept-torn", Short: "Accept changes of before the host ended", Args: console.NoArgs,
		Example: "  atoll sync accept-torn\n  atoll sync accept-torn --agent main",
		Long: `After the host ended without a shutdown, files that the agent wrote last may be
incomplete. Look at them with ` + "`atoll sync review`" + `; this says that they are as they should be.`,
	}, func(v *verb, _ []string) error {
		done, err := v.sync.AcceptTorn(v.ctx(), v.request())
		if err != nil {
			return err
		}
		return v.printDone(done, "accepted")
	})
}

func (v *verb) request() *api.SyncRequest { return &api.SyncRequest{Subject: v.subject} }
