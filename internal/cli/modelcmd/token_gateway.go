package modelcmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway/access"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	money "github.com/atoll-run/atoll/internal/model/usage"
	"github.com/atoll-run/atoll/internal/secret"
)

// gatewayTokenFlags are those of a token that opens the gateway.
type gatewayTokenFlags struct {
	scope, name string
	all, e2b    bool
	quota       access.Quota
	spend       float64
}

func (f *gatewayTokenFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.scope, "role", "", "what a gateway's token allows: admin, operator, operator.approvals, run or read")
	console.OldSpelling(cmd, "scope", "role")
	flags.StringVar(&f.name, "name", "", "who or what the token is for, shown in lists and logs")
	flags.BoolVar(&f.all, "all-accounts", false, "let a token that is not an admin's see every account")
	flags.BoolVar(&f.e2b, "e2b", false, "give a gateway's token the form that the clients of E2B want (role run unless --role says another)")
	flags.IntVar(&f.quota.Runs, "runs", 0, "most runs and tasks at once (default: gateway.limits.runs)")
	flags.IntVar(&f.quota.Sandboxes, "sandboxes", 0, "most sandboxes alive of its account (default: gateway.limits.sandboxes)")
	flags.IntVar(&f.quota.Requests, "requests", 0, "most requests a minute (default: gateway.limits.requests)")
	flags.Float64Var(&f.spend, "spend", 0, "most `USD` a day of its account (default: gateway.limits.usd)")
}

// gatewayOnly are the flags that a session's token has no use for, and sessionOnly
// those that a gateway's has none for.
var (
	gatewayOnly = []string{"name", "all-accounts", "e2b", "runs", "sandboxes", "requests", "spend"}
	sessionOnly = []string{"agent", "run-id", "attempt", "graph", "trace", "model"}
)

// check wants one kind of token, and its flags.
func (f *gatewayTokenFlags) check(cmd *cobra.Command, o *tokenOptions) error {
	wrong, kind := gatewayOnly, "the session token of a proxy"
	if f.e2b && f.scope == "" && o.who.Session == "" {
		f.scope = string(access.Run)
	}
	switch {
	case f.scope == "" && o.who.Session == "":
		return errors.New("--role makes a gateway's token, --session one of the shared proxy: one of the two is needed")
	case f.scope != "" && o.who.Session != "":
		return errors.New("--role and --session exclude each other: a gateway's token is for no single session")
	case f.scope != "":
		wrong, kind = sessionOnly, "a gateway's token"
	}
	if f.scope != "" {
		if err := access.Scope(f.scope).Check(); err != nil {
			return err
		}
	}
	for _, name := range wrong {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is not for %s", name, kind)
		}
	}
	if f.scope != "" && f.scope != string(access.Admin) && o.who.Account == "" && !f.all {
		return fmt.Errorf("a token of role %s is for one account: name it with --account, or say --all-accounts", f.scope)
	}
	if f.all && o.who.Account != "" {
		return errors.New("--account and --all-accounts exclude each other")
	}
	if f.spend < 0 || f.spend > 1e9 || math.IsNaN(f.spend) {
		return errors.New("--spend is an amount of dollars")
	}
	return nil
}

func (f *gatewayTokenFlags) spec(cmd *cobra.Command, o *tokenOptions) access.Spec {
	f.quota.MicroUSD = int64(math.Ceil(f.spend * 1e6))
	s := access.Spec{Name: f.name, Scope: access.Scope(f.scope), Account: o.who.Account, Quota: f.quota, E2B: f.e2b}
	if cmd.Flags().Changed("expires") {
		s.Life = o.life
	}
	return s
}

// createGatewayToken makes a token and shows it.
func (e *env) createGatewayToken(ctx context.Context, cmd *cobra.Command, spec access.Spec, asJSON bool) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	text, made, err := serve.Tokens(a.Installation).Create(ctx, spec)
	if err != nil {
		return console.Usage(cmd, err)
	}
	return e.printGatewayToken(text, made, asJSON)
}

// rotateGatewayToken replaces a token of the gateway; unknown is the error if there is
// none of that id either.
func (e *env) rotateGatewayToken(cmd *cobra.Command, id string, o *tokenOptions, unknown error) error {
	var life time.Duration
	if cmd.Flags().Changed("expires") {
		life = o.life
	}
	text, made, err := serve.Tokens(e.Opened.Installation).Rotate(cmd.Context(), id, life, o.grace)
	if errors.Is(err, access.ErrUnknown) {
		return unknown
	}
	if err != nil {
		return err
	}
	return e.printGatewayToken(text, made, o.asJSON)
}

// printGatewayToken is the one place where a gateway token's text is shown.
func (e *env) printGatewayToken(text secret.Value, made *access.Token, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(map[string]any{"token": text.Reveal(), "info": made})
	}
	e.Notice("token " + made.ID + " is good until " + made.Expires.Local().Format(time.DateTime) + "; it is not shown again")
	_, err := fmt.Fprintln(e.Out, text.Reveal())
	return err
}

// printGatewayTokens shows the tokens of the gateway as a table.
func (e *env) printGatewayTokens(tokens []access.Token, now time.Time) {
	t := console.NewTable("ID", "STATE", "SCOPE", "ACCOUNT", "NAME", "QUOTA", "LAST USED", "EXPIRES")
	for i := range tokens {
		x := &tokens[i]
		used := ""
		if x.LastUsed != nil {
			used = x.LastUsed.Local().Format(time.DateTime)
		}
		account := x.Account
		if account == "" {
			account = "all"
		}
		t.Add(x.ID, x.State(now), string(x.Scope), account, console.OrDash(x.Name), console.OrDash(quotaText(x.Quota)), console.OrDash(used), x.Expires.Local().Format(time.DateTime))
	}
	t.Print(e.Out)
}

func quotaText(q access.Quota) (text string) {
	for _, each := range []struct {
		n    int
		what string
	}{{q.Runs, " runs"}, {q.Sandboxes, " sandboxes"}, {q.Requests, "/min"}} {
		if each.n > 0 {
			text += ", " + strconv.Itoa(each.n) + each.what
		}
	}
	if q.MicroUSD > 0 {
		text += ", " + money.Dollars(q.MicroUSD) + "/day"
	}
	if text == "" {
		return ""
	}
	return text[2:]
}

func newTokenPairCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "pair DEVICE",
		Short:   "Let a device in that connected from another machine",
		Example: `  atoll token pair 3f9c2a71`,
		Long:    "Let a device in that connected to the gateway from another machine. Devices of this machine are let in by themselves.",
		Args:    console.ExactlyOne("device id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := e.Open(cmd.Context())
			if err != nil {
				return err
			}
			id, err := pickToken(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			err = serve.Devices(a.Installation).Approve(cmd.Context(), id)
			if errors.Is(err, access.ErrUnknownDevice) {
				return errhint.With(err, "`atoll token list` names the devices that wait")
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.Out, "%s: paired\n", console.Printable(id))
			return err
		},
	}
}
