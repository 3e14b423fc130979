package secretscmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/keyprovider"
	"github.com/atoll-run/atoll/internal/egress/inject"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
	"github.com/atoll-run/atoll/internal/secret"
	"github.com/atoll-run/atoll/internal/secret/secretstore"
)

func newSetCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Keep a value, read from standard input or typed in unseen",
		Long: `Keep the value of a secret. It is read from standard input, or typed in at a
terminal, which does not show it. It is never an argument: others can see those.

It is used for secrets.NAME of the configuration, unless that names other
sources. The name of a model provider's key, such as ANTHROPIC_API_KEY, keeps
the key that models are asked with.`,
		Example: `  atoll secrets set github
  pass show npm | atoll secrets set npm`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error { return e.set(cmd, args[0], asJSON) },
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// oneName wants a name and nothing else. What follows is not repeated: it may be a
// value.
func oneName(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return console.Usage(cmd, errors.New("no name was given"))
	case len(args) > 1:
		return console.Usage(cmd, errhint.With(errors.New("only a name can be given, and no value"),
			"write the value to standard input, or type it in when asked; change it if it is in the history of your shell now"))
	}
	if err := secretstore.CheckName(args[0]); err != nil {
		return console.Usage(cmd, errors.New("that is not the name of a secret: use small letters, digits, '_' and '-'"))
	}
	return nil
}

func (e *env) set(cmd *cobra.Command, name string, asJSON bool) error {
	settings, err := e.Load()
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	text, err := e.readValue(name)
	if err != nil {
		return err
	}
	value, err := usable(name, text)
	clear(text)
	if err != nil {
		return console.Usage(cmd, err)
	}
	if err := secretstore.Keep(dir(settings), name, value.Reveal()); err != nil {
		return fmt.Errorf("keep the value of %s: %w", name, err)
	}
	e.sayUse(settings, name, "")
	if asJSON {
		return e.PrintJSON(map[string]any{"name": name, "kept": true})
	}
	fmt.Fprintf(e.Out, "%s is kept\n", name)
	return nil
}

// readValue reads a value without showing it.
func (e *env) readValue(name string) ([]byte, error) {
	if !console.IsInteractive(e.In) {
		return io.ReadAll(io.LimitReader(e.In, secret.MaxSize+1))
	}
	fmt.Fprintf(e.Err, "value of %s (it is not shown): ", name)
	text, err := term.ReadPassword(int(e.In.(*os.File).Fd()))
	fmt.Fprintln(e.Err)
	return text, err
}

// usable returns a value that a placeholder can stand for.
func usable(name string, text []byte) (secret.Value, error) {
	value, err := secret.Parse("the value of "+name, text)
	if err == nil && len(value.Reveal()) < inject.MinValue {
		err = fmt.Errorf("the value of %s has fewer than %d characters, and could not be told from ordinary text", name, inject.MinValue)
	}
	return value, err
}

// sayUse says what a value is used for, or what to write so that it is.
func (e *env) sayUse(s *provide.Settings, name, variable string) {
	if slices.ContainsFunc(keyprovider.All(), func(p keyprovider.Provider) bool { return p.Key == name }) {
		return
	}
	all, err := s.Config.Secrets()
	if err != nil {
		return
	}
	at := slices.IndexFunc(all, func(n config.NamedSecret) bool { return n.Name == name })
	kept, _ := secretstore.Find(dir(s), name)
	switch {
	case at < 0:
		e.Notice(fmt.Sprintf("the configuration says nothing about it yet: add secrets: { %s: { hosts: [\"HOST\"]%s } }, and secret: %q to a rule of egress for that host", quoted(name), envText(variable), name))
	case !slices.ContainsFunc(all[at].From, func(f config.SecretSource) bool { return f.File == kept }):
		e.Notice("secrets." + name + ".from names other sources, which are used instead")
	}
}

// quoted is a name as it is written in JSON5.
func quoted(name string) string {
	for _, c := range name {
		if c == '-' || c == '.' {
			return `"` + name + `"`
		}
	}
	return name
}

func envText(variable string) string {
	if variable == "" {
		return ""
	}
	return fmt.Sprintf(", env: %q", variable)
}
