// Package contextcmd has the verb `atoll context`, which keeps the gateways that a person
// works with. It works on every system.
package contextcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/contexts"
	"github.com/atoll-run/atoll/internal/errhint"
)

// Host is what the verb needs of the command line around it.
type Host struct {
	In       io.Reader
	Out      io.Writer
	StateDir func() (string, error)
}

// load reads the contexts of the state directory.
func (h *Host) load() (*contexts.Contexts, error) {
	state, err := h.StateDir()
	if err != nil {
		return nil, err
	}
	return contexts.Load(state)
}

// New returns the command `atoll context`.
func New(h *Host) *cobra.Command {
	cmd := &cobra.Command{
		Use: "context", Short: "Keep the gateways that you work with, by name",
		Long: `Keep the gateways that you work with, by name.

Where sandboxes cannot be made, verbs work with the gateway of the current context;
--gateway NAME names another one. On Linux only --gateway does.`,
		Example: `  atoll context add work https://atoll.example.org --token-file token
  atoll context use work`,
	}
	cmd.AddCommand(h.newAdd(), h.newUse(), h.newList(), h.newRemove())
	return cmd
}

func (h *Host) newAdd() *cobra.Command {
	var tokenFile string
	var to contexts.Context
	cmd := &cobra.Command{
		Use: "add NAME URL", Short: "Add a gateway, or replace it", Args: cobra.ExactArgs(2),
		Long: `Add a gateway, or replace it. The token that "atoll token create" printed is read from a
file, or from standard input with --token-file -. The first context is the current one.`,
		Example: "  atoll context add work https://atoll.example.org --token-file token",
		RunE: func(_ *cobra.Command, args []string) (err error) {
			to.URL = args[1]
			if to.Token, err = h.readToken(tokenFile); err != nil {
				return err
			}
			return h.change(func(c *contexts.Contexts) error { return c.Add(args[0], to) })
		},
	}
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "`file` that has the token; - is standard input")
	cmd.Flags().BoolVar(&to.TrustedNetwork, "trusted-network", false, "plain http:// is allowed: everybody on the way is trusted")
	return cmd
}

// readToken reads a token from a file, or from standard input.
func (h *Host) readToken(path string) (string, error) {
	in := h.In
	switch path {
	case "":
		return "", nil
	case "-":
	default:
		f, err := os.Open(path)
		if err != nil {
			return "", errhint.With(err, "write the token into a file that only you can read")
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, contexts.MaxToken+2))
	return strings.TrimSpace(string(text)), err
}

func (h *Host) newUse() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: cobra.ExactArgs(1), Example: "  atoll context use work",
		RunE: func(_ *cobra.Command, args []string) error {
			return h.change(func(c *contexts.Contexts) error { return c.Use(args[0]) })
		},
	}
}

func (h *Host) newRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Forget a context and its token", Args: cobra.ExactArgs(1), Example: "  atoll context rm work",
		RunE: func(_ *cobra.Command, args []string) error {
			return h.change(func(c *contexts.Contexts) error { return c.Remove(args[0]) })
		},
	}
}

func (h *Host) change(do func(*contexts.Contexts) error) error {
	c, err := h.load()
	if err != nil {
		return err
	}
	return do(c)
}

// listed is a context without its token.
type listed struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Current bool   `json:"current"`
	Token   bool   `json:"token"` // there is one
}

func (h *Host) newList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls", Aliases: []string{"list"}, Short: "List contexts, without their tokens", Args: cobra.NoArgs, Example: "  atoll context ls",
		RunE: func(*cobra.Command, []string) error { return h.list(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (h *Host) list(asJSON bool) error {
	c, err := h.load()
	if err != nil {
		return err
	}
	rows := []listed{}
	for _, name := range c.Names() {
		rows = append(rows, listed{name, c.Contexts[name].URL, name == c.Current, c.Contexts[name].Token != ""})
	}
	if asJSON {
		return json.NewEncoder(h.Out).Encode(rows)
	}
	w := tabwriter.NewWriter(h.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CONTEXT\tGATEWAY\tTOKEN\tCURRENT")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, r.URL, yes(r.Token), yes(r.Current))
	}
	return w.Flush()
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
