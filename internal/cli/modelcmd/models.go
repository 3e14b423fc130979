package modelcmd

import (
	"context"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/run/openclaw"
)

// NewModelsCommand returns the command `atoll models`.
func NewModelsCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{Use: "models", Short: "Keep the list of models that agents in sandboxes are told of", Example: `  atoll models sync --dry-run`}
	cmd.AddCommand(newModelsSyncCommand(e))
	return cmd
}

type modelsOptions struct {
	provider, mode string
	dryRun, asJSON bool
}

func newModelsSyncCommand(e *env) *cobra.Command {
	var o modelsOptions
	cmd := &cobra.Command{
		Use:   "sync [FILE]",
		Short: "Take the list of models from LiteLLM",
		Long: `Take the list of models from LiteLLM: from the model_list of its configuration
FILE (- is standard input), or, without one, from the GET /v1/models of the
LiteLLM that is configured, with the sizes that its GET /model/info tells. What
neither says of a model stays as it was.

The list is kept in the state directory as the models part of an openclaw.json,
with the one provider cogni. What a call costs is LiteLLM's word, so every cost
is 0. Keys that FILE holds are not looked at.`,
		Example: `  atoll models sync
  atoll models sync litellm.config.yaml
  atoll models sync litellm.config.yaml --dry-run --json | jq .models`,
		Args: console.AtMostOne("file"),
		RunE: func(cmd *cobra.Command, args []string) error { return runModelsSync(cmd.Context(), e, o, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.provider, "provider", "", "`name` of the provider to ask (default: the only LiteLLM)")
	flags.StringVar(&o.mode, "mode", string(openclaw.Ephemeral), "whose base URL: that of "+string(openclaw.Ephemeral)+" runs, or of the "+string(openclaw.Gateway))
	flags.BoolVar(&o.dryRun, "dry-run", false, "only say what would change")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func runModelsSync(ctx context.Context, e *env, o modelsOptions, args []string) error {
	sync := service.ModelSync{Provider: o.provider, Mode: openclaw.Mode(o.mode), DryRun: o.dryRun}
	switch {
	case sync.Mode != openclaw.Ephemeral && sync.Mode != openclaw.Gateway:
		return console.WithCode(console.ExitUsage, fmt.Errorf("--mode: %q is neither %s nor %s", o.mode, openclaw.Ephemeral, openclaw.Gateway))
	case len(args) > 0 && o.provider != "":
		return console.WithCode(console.ExitUsage, fmt.Errorf("--provider: the models come from %s, nobody is asked", args[0]))
	case len(args) > 0 && args[0] == "-":
		sync.List = e.In
	case len(args) > 0:
		f, err := os.Open(args[0])
		if err != nil {
			return console.WithCode(console.ExitUsage, errhint.With(err, "name LiteLLM's configuration or a list of models, - for standard input, or nothing to ask LiteLLM"))
		}
		defer f.Close() //nolint:errcheck // it was only read
		sync.List = f
	}
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, o.asJSON)
	}
	done, err := a.Models.SyncModels(ctx, sync)
	if err != nil {
		return err
	}
	return e.printSynced(done, o.asJSON)
}

func (e *env) printSynced(s *service.SyncedModels, asJSON bool) error {
	if asJSON {
		var part struct {
			Models jsontext.Value `json:"models"`
		}
		if err := json.Unmarshal(s.Part, &part); err != nil {
			return err
		}
		return e.PrintJSON(map[string]any{"source": s.Source, "path": s.Path, "written": s.Written, "change": s.Change, "models": part.Models})
	}
	for _, kind := range []struct {
		sign string
		ids  []string
	}{{"+", s.Change.Added}, {"~", s.Change.Changed}, {"-", s.Change.Removed}} {
		for _, id := range kind.ids {
			fmt.Fprintf(e.Out, "%s %s\n", kind.sign, console.Printable(id))
		}
	}
	verb := "Kept in"
	if !s.Written {
		verb = "Nothing was written to"
	}
	fmt.Fprintf(e.Out, "%d models from %s. %s %s\n", s.Count, s.Source, verb, s.Path)
	return nil
}
