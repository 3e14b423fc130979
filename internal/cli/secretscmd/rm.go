package secretscmd

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

func newRmCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "rm NAME…",
		Short:   "Remove values that were kept",
		Example: "  atoll secrets rm github",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usage(cmd, errors.New("no name was given"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return e.remove(args, asJSON) },
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func (e *env) remove(names []string, asJSON bool) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	for _, name := range names {
		if _, ok := secretstore.Find(dir(settings), name); !ok || secretstore.CheckName(name) != nil {
			return errhint.With(fmt.Errorf("no value of %q is kept", console.Printable(name)), "`atoll secrets list` shows what is")
		}
	}
	for _, name := range names {
		if err := secretstore.Remove(dir(settings), name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the value of %s: %w", name, err)
		}
		if !asJSON {
			fmt.Fprintf(e.Out, "%s is removed\n", name)
		}
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"removed": names})
	}
	return nil
}
