package sandboxcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
)

type snapshotOptions struct{ list, remove, asJSON bool }

// NewSnapshotCommand returns the command `atoll snapshot`.
func NewSnapshotCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o snapshotOptions
	cmd := &cobra.Command{
		Use:   "snapshot SANDBOX TEMPLATE",
		Short: "Keep the files of a sandbox as a template",
		Long: `Keep the files of a sandbox that was made with atoll create, or by a program, as a
template that others begin with. A sandbox that runs is held up meanwhile, so that
the files are those of one moment; processes and memory are not kept.`,
		Example: `  atoll snapshot openclaw-sbx-agent-api-q3wz base
  atoll create --template base
  atoll snapshot --list
  atoll snapshot --remove base`,
		Args: func(cmd *cobra.Command, args []string) error { return o.check(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), e, args) },
	}
	cmd.Flags().BoolVar(&o.list, "list", false, "list the templates that there are")
	cmd.Flags().BoolVar(&o.remove, "remove", false, "remove the template that is named")
	cmd.MarkFlagsMutuallyExclusive("list", "remove")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func (o *snapshotOptions) check(cmd *cobra.Command, args []string) error {
	switch {
	case o.list && len(args) > 0:
		return console.Usage(cmd, fmt.Errorf("unexpected argument %q", args[0]))
	case o.remove && len(args) != 1:
		return console.Usage(cmd, fmt.Errorf("the name of one template is needed, %d were given", len(args)))
	case !o.list && !o.remove && len(args) != 2:
		return console.Usage(cmd, fmt.Errorf("a sandbox and the name of a template are needed, %d were given", len(args)))
	}
	return nil
}

func (o *snapshotOptions) run(ctx context.Context, e *env, args []string) error {
	g, err := e.needGateway(ctx)
	if err != nil {
		return err
	}
	if o.list {
		found, err := g.Client.Templates(ctx, api.TemplateQuery{})
		if err != nil {
			return backend.ProblemError(err)
		}
		return e.printTemplates(found, o.asJSON)
	}
	var template *api.Template
	if o.remove {
		template, err = g.Client.RemoveTemplate(ctx, args[0], api.TemplateQuery{})
	} else {
		done := e.Progress("keeping the files")
		template, err = g.Client.CreateSnapshot(ctx, args[0], args[1])
		done()
	}
	if err != nil {
		return backend.ProblemError(err)
	}
	if o.asJSON {
		return e.PrintJSON(template)
	}
	_, err = fmt.Fprintln(e.Out, template.Name)
	return err
}

// printTemplates prints a table of templates.
func (e *env) printTemplates(found *api.Templates, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(found)
	}
	t := console.NewTable("TEMPLATE", "ACCOUNT", "IMAGE", "CREATED")
	for _, one := range found.Templates {
		t.Add(one.Name, console.Printable(one.Account), console.Printable(one.Image), one.Created.Local().Format(time.DateTime))
	}
	t.Print(e.Out)
	return nil
}
