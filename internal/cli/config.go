package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/config"
)

func newConfigCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check and show the configuration"}
	cmd.AddCommand(newConfigCheckCommand(e), newConfigSchemaCommand(e), newConfigShowCommand(e))
	return cmd
}

func newConfigCheckCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Name everything that is wrong with the file, at once",
		Example: `  atoll config check
  atoll config check ~/.openclaw/openclaw.json --json`,
		Args: maximumArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				e.configPath = args[0]
			}
			return runConfigCheck(e, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func runConfigCheck(e *env, asJSON bool) error {
	settings, err := e.load()
	if err != nil {
		return e.configError(err, asJSON)
	}
	if asJSON {
		return e.printJSON(map[string]any{
			"path": settings.Location.Path, "errors": []any{},
			"warnings": orEmpty(settings.Config.Warnings()), "ignored": orEmpty(settings.Config.Ignored()),
		})
	}
	path := settings.Location.Path
	if path == "" {
		path = "no configuration file: the built-in defaults"
	}
	fmt.Fprintf(e.Out, "%s: ok\n", path)
	for _, w := range settings.Config.Warnings() {
		fmt.Fprintln(e.Out, "warning: "+printable(w.String()))
	}
	for _, part := range settings.Config.Ignored() {
		fmt.Fprintf(e.Out, "ignored: %s belongs to another program\n", part)
	}
	return nil
}

// configError prints the problems of a file as JSON where that was asked for;
// all of them are one failure.
func (e *env) configError(err error, asJSON bool) error {
	problems, ok := errors.AsType[config.Problems](err)
	if !asJSON || !ok {
		return err
	}
	if err := e.printJSON(map[string]any{"errors": problems}); err != nil {
		return err
	}
	return withCode(exitUsage, nil)
}

func newConfigSchemaCommand(e *env) *cobra.Command {
	return &cobra.Command{
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
}

func newConfigShowCommand(e *env) *cobra.Command {
	var agent string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the settings of one agent, and where each value came from",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return runConfigShow(e, agent, asJSON) },
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
		return withCode(exitUsage, err)
	}
	values := flatten(agent)
	if asJSON {
		return e.printJSON(map[string]any{
			"agentId": agent.ID, "path": settings.Location.Path, "workspace": agent.Workspace,
			"sandbox": agent.Sandbox, "origins": agent.Origins,
		})
	}
	t := newTable("SETTING", "VALUE", "FROM")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		t.add(key, values[key], originText(agent.Origins[key]))
	}
	t.print(e.Out)
	return nil
}

// originText says where a value came from, as a place to go to.
func originText(o config.Origin) string {
	switch {
	case o.Line > 0:
		return fmt.Sprintf("%s (line %d)", o.Path, o.Line)
	case o.Source == "derived":
		return o.Path
	case o.Path != "":
		return o.Path
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
