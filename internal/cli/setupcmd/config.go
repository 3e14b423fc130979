package setupcmd

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy/settings"
)

// NewConfigCommand returns the command `atoll config`.
func NewConfigCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{Use: "config", Short: "Check and show the configuration, and trust that of a project", Example: `  atoll config check
  atoll config show --agent main`}
	cmd.AddCommand(newConfigCheckCommand(e), newConfigSchemaCommand(e), newConfigShowCommand(e), newConfigTrustCommand(e), newConfigUntrustCommand(e))
	return cmd
}

func newConfigCheckCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Name everything that is wrong with the file, at once",
		Example: `  atoll config check
  atoll config check ~/.openclaw/openclaw.json --json`,
		Args: console.AtMostOne("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := e.useFile(args[0]); err != nil {
					return e.ConfigError(err, asJSON)
				}
			}
			return runConfigCheck(e, asJSON)
		},
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// useFile makes an argument the configuration file.
func (e *env) useFile(name string) error {
	e.ConfigPath = name
	if _, err := os.Stat(name); err != nil {
		return console.WithCode(console.ExitUsage, errhint.With(fmt.Errorf("config file: %w", err), "name a file that exists and that you can read"))
	}
	return nil
}

func runConfigCheck(e *env, asJSON bool) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	if problems := console.RefusalsOfAll(settings); len(problems) > 0 {
		return e.ConfigError(problems, asJSON)
	}
	warnings, ignored := settings.Config.Warnings(), settings.Config.Ignored()
	if asJSON {
		return e.PrintJSON(console.WithProject(settings.Project, map[string]any{
			"path": settings.Location.Path, "errors": []any{}, "warnings": console.ProblemsJSON(warnings), "ignored": console.OrEmpty(ignored),
		}))
	}
	path := settings.Location.Path
	if path == "" {
		path = "no configuration file: the built-in defaults"
	}
	fmt.Fprintf(e.Out, "%s: ok\n", console.Printable(path))
	e.PrintProject(settings.Project)
	for _, w := range warnings {
		fmt.Fprintln(e.Out, "warning: "+console.ProblemLine(w))
	}
	for _, part := range ignored {
		fmt.Fprintf(e.Out, "ignored: %s belongs to another program\n", console.Printable(part))
	}
	return nil
}

func newConfigSchemaCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the file, for editors",
		Example: "  atoll config schema >atoll.schema.json",
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.Out, "%s\n", schema)
			return err
		},
	}
	console.JSONFlag(cmd, new(bool)) // a schema is JSON in any case
	return cmd
}

func newConfigShowCommand(e *env) *cobra.Command {
	var agent string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the settings of one agent, and where each value came from",
		Example: `  atoll config show
  atoll config show --agent main --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := console.CheckName(cmd, "agent"); err != nil {
				return err
			}
			return runConfigShow(e, agent, asJSON)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "agent `id` (default: the default agent)")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func runConfigShow(e *env, id string, asJSON bool) error {
	loaded, err := e.Load()
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	if id == "" {
		id = loaded.Config.DefaultAgent()
	}
	agent, err := loaded.Config.Resolve(id)
	if err != nil {
		return e.ConfigError(console.WithCode(console.ExitUsage, err), asJSON)
	}
	agent.Sandbox = settings.WithoutSecrets(loaded.Config, agent)
	values := settings.Flatten(agent)
	if asJSON {
		return e.PrintJSON(console.WithProject(loaded.Project, map[string]any{
			"agentId": agent.ID, "path": loaded.Location.Path, "workspace": agent.Workspace,
			"sandbox": agent.Sandbox, "origins": agent.Origins,
		}))
	}
	t := console.NewTable("SETTING", "VALUE", "FROM")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		t.Add(key, values[key], console.OriginText(agent.Origins[key]))
	}
	t.Print(e.Out)
	e.PrintProject(loaded.Project)
	return nil
}
