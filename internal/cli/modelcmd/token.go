package modelcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/model/token"
	"github.com/atoll-run/atoll/internal/secret"
)

// NewTokenCommand returns the command `atoll token`.
func NewTokenCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Mint and end tokens of the gateway and of the shared proxy",
		Example: `  atoll token create --role run --account acct-7
  atoll token list`,
		Long: `Mint and end tokens.

Those of the gateway (atoll gateway) let people and programs in: each has a role,
is bound to a billing account, and may have quotas.

Session tokens are for the shared proxy (atoll proxy). A gateway that Atoll did
not make sends one with every call. It alone says whose call that is, for exactly
one session, and it ends by itself.

Only hashes are kept of both. A revoked token is refused within a second,
connections that it opened too.`,
	}
	cmd.AddCommand(newTokenCreateCommand(e), newTokenListCommand(e), newTokenRevokeCommand(e), newTokenRotateCommand(e), newTokenPairCommand(e))
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
	var f gatewayTokenFlags
	cmd := &cobra.Command{
		Use:   "create --role ROLE | --e2b | --session KEY",
		Short: "Mint a token for the gateway, or for one session of the shared proxy",
		Long: `Mint a token and print it. It is shown this once: only a hash is kept.

With --role it opens the gateway: admin (everything), operator (change what
exists), operator.approvals (answer questions, and decide about changes of agents),
run (give tasks to agents) or read. With --e2b it has the form that the clients of
E2B want, and opens the gateway's /e2b to them. With --session it is for one session
of the shared proxy.`,
		Example: `  atoll token create --e2b --account acct-7 --sandboxes 20
  atoll token create --role run --account acct-7 --runs 4 --spend 5 --expires 720h
  atoll token create --session agent:main:acct-7:run-42 --account acct-7 --run-id run-42 --expires 2h`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd, &o); err != nil {
				return console.Usage(cmd, err)
			}
			if f.scope != "" {
				return e.createGatewayToken(cmd.Context(), cmd, f.spec(cmd, &o), o.asJSON)
			}
			return e.withTokens(cmd.Context(), o.asJSON, func(d *token.Store) error {
				text, made, err := d.Create(cmd.Context(), o.who, o.life)
				if err != nil {
					return console.Usage(cmd, err)
				}
				return e.printToken(text, made, o.asJSON)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.who.Session, "session", "", "session `key` that a token of the shared proxy speaks for")
	flags.StringVar(&o.who.Account, "account", "", "billing account")
	flags.StringVar(&o.who.Agent, "agent", "", "agent id")
	flags.StringVar(&o.who.Run, "run-id", "", "`id` of the run that it speaks for")
	console.OldSpelling(cmd, "run", "run-id")
	flags.StringVar(&o.who.Attempt, "attempt", "", "attempt of the run")
	flags.StringVar(&o.who.Graph, "graph", "", "graph id")
	flags.StringVar(&o.who.Trace, "trace", "", "id of an existing trace")
	flags.StringSliceVar(&o.who.Models, "model", nil, "only this `model` (again for more; a name may end in *)")
	console.LifeFlag(cmd, &o.life, "expires", token.DefaultLife, "how long it is good for (a gateway's token: 90 days)")
	f.add(cmd)
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// withTokens opens the installation's tokens.
func (e *env) withTokens(ctx context.Context, asJSON bool, f func(*token.Store) error) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	err = f(a.Models.Tokens())
	if errors.Is(err, token.ErrUnknown) {
		return errhint.With(err, "`atoll token list` shows the ids")
	}
	return err
}

// printToken is the one place where a token's text is shown.
func (e *env) printToken(text secret.Value, made *token.Token, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(map[string]any{"token": text.Reveal(), "info": made})
	}
	e.Notice("token " + made.ID + " is good until " + made.Expires.Local().Format(time.DateTime) + "; it is not shown again")
	_, err := fmt.Fprintln(e.Out, text.Reveal())
	return err
}

func newTokenListCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Show the tokens there are",
		Example: `  atoll token list
  atoll token ls --json`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.listTokens(cmd.Context(), asJSON)
		},
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// listTokens shows both kinds.
func (e *env) listTokens(ctx context.Context, asJSON bool) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	tokens, err := a.Models.Tokens().List(ctx)
	if err != nil {
		return err
	}
	gateway, err := serve.Tokens(a.Installation).List(ctx)
	if err != nil {
		return err
	}
	devices, err := serve.Devices(a.Installation).List(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(tokensJSON(tokens, gateway, devices))
	}
	e.printTokens(tokens, gateway, devices)
	return nil
}

func tokensJSON(tokens []token.Token, gateway []access.Token, devices []access.Device) map[string]any {
	now := time.Now()
	rows, others := []map[string]any{}, []map[string]any{}
	for i := range tokens {
		rows = append(rows, map[string]any{"info": tokens[i], "state": tokens[i].State(now)})
	}
	for i := range gateway {
		others = append(others, map[string]any{"info": gateway[i], "state": gateway[i].State(now)})
	}
	return map[string]any{"tokens": rows, "gateway": others, "devices": append([]access.Device{}, devices...)}
}

func (e *env) printTokens(tokens []token.Token, gateway []access.Token, devices []access.Device) {
	now := time.Now()
	if len(tokens)+len(gateway) == 0 {
		fmt.Fprintln(e.Out, "No tokens. `atoll token create --role ROLE` mints one for the gateway, --session KEY one for the shared proxy.")
	}
	if len(gateway) > 0 {
		e.printGatewayTokens(gateway, now)
	}
	for i := range devices {
		if d := &devices[i]; d.Approved == nil {
			e.Notice("a device waits: `atoll token pair " + console.Printable(d.ID) + "` lets " + console.Printable(d.Client) + " (" + console.Printable(d.Platform) + ") in")
		}
	}
	if len(tokens) == 0 {
		return
	}
	t := console.NewTable("ID", "STATE", "SESSION", "ACCOUNT", "RUN", "CREATED", "EXPIRES")
	for i := range tokens {
		x := &tokens[i]
		t.Add(x.ID, x.State(now), x.Session, console.OrDash(x.Account), console.OrDash(x.Run), x.Created.Local().Format(time.DateTime), x.Expires.Local().Format(time.DateTime))
	}
	t.Print(e.Out)
}

func newTokenRevokeCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a token, or forget a device, at once",
		Example: `  atoll token revoke UT376AETEES7`,
		Args:    console.ExactlyOne("token id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withTokens(cmd.Context(), false, func(d *token.Store) error {
				id, err := pickToken(cmd.Context(), e.Opened, args[0])
				if err != nil {
					return err
				}
				if err := e.revoke(cmd.Context(), d, id); err != nil {
					return err
				}
				_, err = fmt.Fprintf(e.Out, "%s: revoked\n", console.Printable(id))
				return err
			})
		},
	}
}

// revoke ends a token of either kind, or forgets a device.
func (e *env) revoke(ctx context.Context, d *token.Store, id string) error {
	err := d.Revoke(ctx, id)
	if !errors.Is(err, token.ErrUnknown) {
		return err
	}
	if other := serve.Tokens(e.Opened.Installation).Revoke(ctx, id); !errors.Is(other, access.ErrUnknown) {
		return other
	}
	if other := serve.Devices(e.Opened.Installation).Remove(ctx, id); !errors.Is(other, access.ErrUnknownDevice) {
		return other
	}
	return err
}

func newTokenRotateCommand(e *env) *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use:     "rotate ID",
		Short:   "Mint a token with the same rights and end the old one",
		Example: `  atoll token rotate UT376AETEES7 --expires 2h --grace 1m`,
		Args:    console.ExactlyOne("token id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withTokens(cmd.Context(), o.asJSON, func(d *token.Store) error {
				id, err := pickToken(cmd.Context(), e.Opened, args[0])
				if err != nil {
					return err
				}
				text, made, err := d.Rotate(cmd.Context(), id, o.life, o.grace)
				if errors.Is(err, token.ErrUnknown) {
					return e.rotateGatewayToken(cmd, id, &o, err)
				}
				if err != nil {
					return err
				}
				return e.printToken(text, made, o.asJSON)
			})
		},
	}
	console.LifeFlag(cmd, &o.life, "expires", token.DefaultLife, "how long the new one is good for (a gateway's token: as long as the old one was)")
	console.TimeFlag(cmd, &o.grace, "grace", time.Minute, "how long the old one stays good")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}
