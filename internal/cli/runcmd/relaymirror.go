package runcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/relay/deliver"
)

func newRelayMirrorCommand(e *env) *cobra.Command {
	var every time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "mirror DIRECTORY",
		Short: "Keep a directory a copy of the repository, for programs without a credential",
		Long: `Make a directory be a bare repository with all branches of the configured one, and
with --every keep it so until the command is ended. The credential stays in this
process. Programs that may read the code clone from the directory.

The repository is relay.repository of the configuration, or else what the variable
COGNI_REPO_URL names; the token is relay.token, or else that of GITHUB_TOKEN.`,
		Example: `  atoll relay mirror /var/lib/atoll/repo
  atoll relay mirror /var/lib/atoll/repo --every 1m`,
		Args: console.ExactlyOne("DIRECTORY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRelayMirror(cmd.Context(), e, args[0], mirrorOptions{every, asJSON})
		},
	}
	console.TimeFlag(cmd, &every, "every", 0, "do it again after this `time`, until it is ended")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// mirrorOptions are the flags of atoll relay mirror.
type mirrorOptions struct {
	every  time.Duration
	asJSON bool
}

func runRelayMirror(ctx context.Context, e *env, dir string, o mirrorOptions) error {
	relays, err := e.relays(o.asJSON)
	if err != nil {
		return err
	}
	relays.Config.TakeAddress(e.Getenv("COGNI_REPO_URL"))
	project, err := relays.Project(deliver.WorkOf{})
	if err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	return e.mirror(ctx, func() (string, error) { return relays.Publish(ctx, project, dir) }, o)
}

// mirror copies once, or again and again: then a copy that fails is reported, and the
// next one is tried.
func (e *env) mirror(ctx context.Context, publish func() (string, error), o mirrorOptions) error {
	last := ""
	for {
		head, err := publish()
		switch {
		case err != nil && (o.every == 0 || ctx.Err() != nil):
			return err
		case err != nil:
			e.Notice("not copied: " + err.Error())
		case head != last:
			if err := e.printHead(head, o.asJSON); err != nil {
				return err
			}
			last = head
		}
		if o.every == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.every):
		}
	}
}

func (e *env) printHead(head string, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(map[string]string{"head": head})
	}
	_, err := fmt.Fprintf(e.Out, "at %s\n", shortCommit(head))
	return err
}
