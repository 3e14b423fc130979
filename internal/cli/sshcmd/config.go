package sshcmd

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sshserver/clientconfig"
)

type configOptions struct {
	force, remove, asJSON bool
}

func newConfigCommand(e *env) *cobra.Command {
	var o configOptions
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Let ssh, scp, sftp, rsync and editors reach SANDBOX.atoll",
		Long: `Let ssh, scp, sftp, rsync and editors reach sandboxes as SANDBOX.atoll.

It makes a key for the client and one for the server, both in the state directory
and used for nothing else, and adds one line to ~/.ssh/config that includes our
hosts. The line is shown first. --remove takes it out again.`,
		Example: `  atoll ssh config
  atoll ssh config --force
  atoll ssh config --remove`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return e.configure(&o) },
	}
	cmd.Flags().BoolVar(&o.force, "force", false, "do not ask")
	cmd.Flags().BoolVar(&o.remove, "remove", false, "take the line out of ~/.ssh/config")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// configured is what config prints.
type configured struct {
	Config  string `json:"config"`  // our file
	Path    string `json:"path"`    // the person's
	Line    string `json:"line"`    // that includes ours
	Changed bool   `json:"changed"` // the person's file was written
}

func (e *env) configure(o *configOptions) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	files, err := e.makeFiles()
	if err != nil {
		return err
	}
	include, err := files.FindInclude(filepath.Join(settings.Paths.Home, ".ssh", "config"))
	if err != nil {
		return err
	}
	done := &configured{Config: files.ConfigPath(), Path: include.Path, Line: include.Line, Changed: include.Has == o.remove}
	if done.Changed {
		if err := e.change(o, include); err != nil {
			return err
		}
	}
	if o.asJSON {
		return e.PrintJSON(done)
	}
	return e.say(o, done)
}

// change writes the person's file, once that is agreed to.
func (e *env) change(o *configOptions, include *clientconfig.Include) error {
	if o.remove {
		return include.Remove()
	}
	if !o.force && !e.agrees(include) {
		return errhint.With(errors.New("not confirmed: "+include.Path+" was not changed"), "answer y, or give --force, or use `atoll ssh SANDBOX`, which needs no change")
	}
	return include.Add()
}

// agrees shows the line and asks.
func (e *env) agrees(include *clientconfig.Include) bool {
	fmt.Fprintf(e.Err, "This is added at the top of %s:\n  %s\n", console.Printable(include.Path), console.Printable(include.Line))
	return e.Agrees("Continue?")
}

func (e *env) say(o *configOptions, done *configured) error {
	switch {
	case o.remove && done.Changed:
		fmt.Fprintf(e.Out, "%s does not include our hosts any more\n", done.Path)
	case o.remove:
		fmt.Fprintf(e.Out, "%s includes none of our hosts\n", done.Path)
	case done.Changed:
		fmt.Fprintf(e.Out, "%s includes our hosts now\n", done.Path)
	default:
		fmt.Fprintf(e.Out, "%s includes our hosts already\n", done.Path)
	}
	if !o.remove {
		fmt.Fprintf(e.Out, "next: ssh SANDBOX%s, with a name that `atoll ps` shows\n", clientconfig.Domain)
	}
	return e.Out.Err
}
