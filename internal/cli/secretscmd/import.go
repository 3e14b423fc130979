package secretscmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config/keyprovider"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

func newImportCommand(e *env) *cobra.Command {
	var asJSON, replace bool
	cmd := &cobra.Command{
		Use:   "import FILE [VARIABLE…]",
		Short: "Keep the values of a .env file",
		Long: `Keep the values of a .env file, all or those of the variables that are named.
GITHUB_TOKEN becomes the secret github_token; the name of a model provider's key
stays as it is. The file must be for its owner alone (mode 0600). It is not
changed: remove it from the project afterwards.`,
		Example: `  atoll secrets import .env
  atoll secrets import .env GITHUB_TOKEN NPM_TOKEN`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usage(cmd, errors.New("no file was given"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.importFile(cmd, args[0], args[1:], replace, asJSON)
		},
	}
	cmd.Flags().BoolVar(&replace, "force", false, "also replace values that are kept already")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// found is a variable of a file with the name of its secret.
type found struct {
	variable, name string
	value          secret.Value
}

// skipped is a variable that is not kept, and why.
type skipped struct {
	Variable string `json:"variable"`
	Reason   string `json:"reason"`
}

func (e *env) importFile(cmd *cobra.Command, file string, only []string, replace, asJSON bool) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	variables, err := readEnv(file, only)
	if err != nil {
		return console.Usage(cmd, err)
	}
	take, left := choose(variables)
	if err := checkNew(dir(settings), take, replace); err != nil {
		return console.Usage(cmd, err)
	}
	names := []string{}
	for _, f := range take {
		if err := secretstore.Keep(dir(settings), f.name, f.value.Reveal()); err != nil {
			return fmt.Errorf("keep the value of %s: %w", f.name, err)
		}
		names = append(names, f.name)
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"kept": names, "skipped": left})
	}
	for _, f := range take {
		fmt.Fprintf(e.Out, "%s is kept\n", f.name)
		e.sayUse(settings, f.name, f.variable)
	}
	for _, s := range left {
		e.Notice(s.Variable + " is left out: " + s.Reason)
	}
	return nil
}

// readEnv reads the variables of a file, all or some.
func readEnv(file string, only []string) ([]secret.Variable, error) {
	content, err := secret.ReadPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	defer clear(content)
	all, err := secret.ParseEnv(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(only) == 0 {
		return all, nil
	}
	for _, name := range only {
		if !slices.ContainsFunc(all, func(v secret.Variable) bool { return v.Name == name }) {
			return nil, fmt.Errorf("%s has no %s", file, name)
		}
	}
	return slices.DeleteFunc(all, func(v secret.Variable) bool { return !slices.Contains(only, v.Name) }), nil
}

// choose separates the variables whose values can be secrets. Of two with one name the
// last counts, as programs read such files.
func choose(variables []secret.Variable) (take []found, left []skipped) {
	left = []skipped{}
	for i, v := range variables {
		if slices.ContainsFunc(variables[i+1:], func(later secret.Variable) bool { return later.Name == v.Name }) {
			continue
		}
		value, err := usable(v.Name, v.Text)
		if err != nil {
			left = append(left, skipped{v.Name, err.Error()})
			continue
		}
		take = append(take, found{v.Name, nameOf(v.Name), value})
	}
	return take, left
}

// nameOf is the name of the secret of a variable.
func nameOf(variable string) string {
	if slices.ContainsFunc(keyprovider.All(), func(p keyprovider.Provider) bool { return p.Key == variable }) {
		return variable
	}
	return strings.ToLower(variable)
}

// checkNew refuses to replace values that are kept.
func checkNew(dir string, take []found, replace bool) error {
	var there []string
	for _, f := range take {
		if err := secretstore.CheckName(f.name); err != nil {
			return err
		}
		if _, ok := secretstore.Find(dir, f.name); ok {
			there = append(there, f.name)
		}
	}
	if len(there) == 0 || replace {
		return nil
	}
	return errhint.With(fmt.Errorf("there is a value of %s already", strings.Join(there, ", ")), "--force replaces it")
}
