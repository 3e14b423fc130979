package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
)

func newConfigCommand(e *env) *cobra.Command {
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
		Args: atMostOne("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := e.useFile(args[0]); err != nil {
					return e.configError(err, asJSON)
				}
			}
			return runConfigCheck(e, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// useFile makes an argument the configuration file.
func (e *env) useFile(name string) error {
	e.configPath = name
	if _, err := os.Stat(name); err != nil {
		return withCode(exitUsage, errhint.With(fmt.Errorf("config file: %w", err), "name a file that exists and that you can read"))
	}
	return nil
}

func runConfigCheck(e *env, asJSON bool) error {
	settings, err := e.load()
	if err != nil {
		return e.configError(err, asJSON)
	}
	if problems := refusalsOfAll(settings); len(problems) > 0 {
		return e.configError(problems, asJSON)
	}
	warnings, ignored := settings.Config.Warnings(), settings.Config.Ignored()
	if asJSON {
		return e.printJSON(withProject(settings.Project, map[string]any{
			"path": settings.Location.Path, "errors": []any{}, "warnings": problemsJSON(warnings), "ignored": orEmpty(ignored),
		}))
	}
	path := settings.Location.Path
	if path == "" {
		path = "no configuration file: the built-in defaults"
	}
	fmt.Fprintf(e.Out, "%s: ok\n", printable(path))
	e.printProject(settings.Project)
	for _, w := range warnings {
		fmt.Fprintln(e.Out, "warning: "+problemLine(w))
	}
	for _, part := range ignored {
		fmt.Fprintf(e.Out, "ignored: %s belongs to another program\n", printable(part))
	}
	return nil
}

func newConfigSchemaCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of the file, for editors",
		Example: "  atoll config schema >atoll.schema.json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.Out, "%s\n", schema)
			return err
		},
	}
	jsonFlag(cmd, new(bool)) // a schema is JSON in any case
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkName(cmd, "agent"); err != nil {
				return err
			}
			return runConfigShow(e, agent, asJSON)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "agent `id` (default: the default agent)")
	jsonFlag(cmd, &asJSON)
	return cmd
}

func runConfigShow(e *env, id string, asJSON bool) error {
	settings, err := e.load()
	if err != nil {
		return e.configError(err, asJSON)
	}
	if id == "" {
		id = settings.Config.DefaultAgent()
	}
	agent, err := settings.Config.Resolve(id)
	if err != nil {
		return e.configError(withCode(exitUsage, err), asJSON)
	}
	agent.Sandbox = withoutSecrets(settings.Config, agent)
	values := flatten(agent)
	if asJSON {
		return e.printJSON(withProject(settings.Project, map[string]any{
			"agentId": agent.ID, "path": settings.Location.Path, "workspace": agent.Workspace,
			"sandbox": agent.Sandbox, "origins": agent.Origins,
		}))
	}
	t := newTable("SETTING", "VALUE", "FROM")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		t.add(key, values[key], originText(agent.Origins[key]))
	}
	t.print(e.Out)
	e.printProject(settings.Project)
	return nil
}

// originText says where a value came from, as a place to go to.
func originText(o config.Origin) string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("%s (line %d)", o.Path, o.Line)
	case o.Path != "":
		return o.Path
	case o.Source == config.FromProject:
		return "./atoll.json5, which is not trusted and only narrows"
	case o.Source == "derived":
		return "built-in default, below the state directory"
	default:
		return "built-in default"
	}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
