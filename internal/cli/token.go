package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/llm/token"
	"github.com/atoll-run/atoll/internal/secret"
)

func newTokenCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Mint and end the session tokens of the shared proxy",
		Long: `Mint and end the session tokens of the shared proxy (atoll proxy).

A gateway that Atoll did not make sends one with every call. It alone says whose
call that is, for exactly one session, and it ends by itself.`,
	}
	cmd.AddCommand(newTokenCreateCommand(e), newTokenListCommand(e), newTokenRevokeCommand(e), newTokenRotateCommand(e))
	return cmd
}

type tokenOptions struct {
	who    token.Identity
	life   time.Duration
	grace  time.Duration
	asJSON bool
}

func newTokenCreateCommand(e *env) *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use:     "create --session KEY",
		Short:   "Mint a token for one session",
		Long:    "Mint a token for one session and print it. It is shown this once: only a hash is kept.",
		Example: `  atoll token create --session agent:main:acct-7:run-42 --account acct-7 --run run-42 --expires 2h`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withTokens(cmd.Context(), o.asJSON, func(d *token.Desk) error {
				text, made, err := d.Create(cmd.Context(), o.who, o.life)
				if err != nil {
					return usage(cmd, err)
				}
				return e.printToken(text, made, o.asJSON)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.who.Session, "session", "", "session `key` that the token speaks for (required)")
	flags.StringVar(&o.who.Account, "account", "", "billing account")
	flags.StringVar(&o.who.Agent, "agent", "", "agent id")
	flags.StringVar(&o.who.Run, "run", "", "run id")
	flags.StringVar(&o.who.Attempt, "attempt", "", "attempt of the run")
	flags.StringVar(&o.who.Graph, "graph", "", "graph id")
	flags.StringVar(&o.who.Trace, "trace", "", "id of an existing trace")
	flags.StringSliceVar(&o.who.Models, "model", nil, "only this `model` (again for more; a name may end in *)")
	flags.DurationVar(&o.life, "expires", token.DefaultLife, "how long it is good for")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}

// withTokens opens the installation's tokens.
func (e *env) withTokens(ctx context.Context, asJSON bool, f func(*token.Desk) error) error {
	a, err := e.open(ctx)
	if err != nil {
		return e.configError(err, asJSON)
	}
	err = f(a.Tokens())
	if errors.Is(err, token.ErrUnknown) {
		return advice.With(err, "`atoll token list` shows the ids")
	}
	return err
}

// printToken is the one place where a token's text is shown.
func (e *env) printToken(text secret.Value, made *token.Token, asJSON bool) error {
	if asJSON {
		return e.printJSON(map[string]any{"token": text.Reveal(), "info": made})
	}
	e.notice("token " + made.ID + " is good until " + made.Expires.Local().Format(time.DateTime) + "; it is not shown again")
	_, err := fmt.Fprintln(e.Out, text.Reveal())
	return err
}

func newTokenListCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the tokens there are",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withTokens(cmd.Context(), asJSON, func(d *token.Desk) error {
				tokens, err := d.List(cmd.Context())
				if err != nil {
					return err
				}
				return e.printTokens(tokens, asJSON)
			})
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func (e *env) printTokens(tokens []token.Token, asJSON bool) error {
	now := time.Now()
	if asJSON {
		rows := []map[string]any{}
		for i := range tokens {
			rows = append(rows, map[string]any{"info": tokens[i], "state": tokens[i].State(now)})
		}
		return e.printJSON(map[string]any{"tokens": rows})
	}
	if len(tokens) == 0 {
		fmt.Fprintln(e.Out, "No tokens. `atoll token create --session KEY` mints one.")
		return nil
	}
	t := newTable("ID", "STATE", "SESSION", "ACCOUNT", "RUN", "CREATED", "EXPIRES")
	for i := range tokens {
		x := &tokens[i]
		t.add(x.ID, x.State(now), x.Session, orDash(x.Account), orDash(x.Run), x.Created.Local().Format(time.DateTime), x.Expires.Local().Format(time.DateTime))
	}
	t.print(e.Out)
	return nil
}

func newTokenRevokeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "End a token at once",
		Args:  exactlyOne("token id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withTokens(cmd.Context(), false, func(d *token.Desk) error {
				if err := d.Revoke(cmd.Context(), args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(e.Out, "%s: revoked\n", printable(args[0]))
				return err
			})
		},
	}
}

func newTokenRotateCommand(e *env) *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Mint a token for the same session and end the old one",
		Args:  exactlyOne("token id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withTokens(cmd.Context(), o.asJSON, func(d *token.Desk) error {
				text, made, err := d.Rotate(cmd.Context(), args[0], o.life, o.grace)
				if err != nil {
					return err
				}
				return e.printToken(text, made, o.asJSON)
			})
		},
	}
	cmd.Flags().DurationVar(&o.life, "expires", token.DefaultLife, "how long the new one is good for")
	cmd.Flags().DurationVar(&o.grace, "grace", time.Minute, "how long the old one stays good")
	jsonFlag(cmd, &o.asJSON)
	return cmd
}
