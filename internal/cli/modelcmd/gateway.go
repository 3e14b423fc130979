package modelcmd

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/gateway"
	"github.com/atoll-run/atoll/internal/gateway/serve"
	"github.com/atoll-run/atoll/internal/secret"
)

// NewGatewayCommand returns the command `atoll gateway`.
func NewGatewayCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	var o gatewayOptions
	cmd := &cobra.Command{
		Use:   "gateway [--listen HOST:PORT]",
		Short: "Serve sandboxes, sessions and runs to many users and programs",
		Long: `Serve sandboxes, sessions and runs to many users and programs: OpenClaw's gateway
protocol over WebSocket, and HTTP for everything. Callers have a token of atoll
token create; the user who started it reaches it over a socket in the state
directory. Without a provider of models it serves sandboxes.

With --private it listens on that socket alone, and ends after a minute in which
nobody used it. --background is for programs of this user: it prints the socket of
the gateway that runs, after it has started a private one if there was none.

SIGTERM ends it when what is under way is finished, or the grace is over; SIGHUP
reads tokens, keys, limits, prices and certificates again. Rules of egress follow
the file without it. It logs JSON to standard error.`,
		Example: `  atoll token create --role run --account acct-7 --runs 4
  atoll gateway`,
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if o.background {
				return e.startInBackground(cmd.Context(), o.Idle)
			}
			return e.runGateway(cmd.Context(), o.Options)
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.Listen, "listen", nil, "`address` to serve, HOST:PORT (again for more; default: gateway.bind and gateway.port, 127.0.0.1:18789)")
	console.TimeFlag(cmd, &o.Grace, "grace", serve.Grace, "how long tasks and runs have to finish when it ends")
	flags.BoolVar(&o.Private, "private", false, "serve this user's programs on the socket in the state directory alone")
	console.LifeFlag(cmd, &o.Idle, "idle", 0, "end when nobody was connected, and no sandbox had a deadline, for this `time` (default: never, 1m with --private)")
	flags.BoolVar(&o.background, "background", false, "start a private one unless one runs, and print its socket")
	return cmd
}

// gatewayOptions are the flags of the gateway.
type gatewayOptions struct {
	serve.Options
	background bool
}

// defaultIdle is the idle time after which a private gateway exits.
const defaultIdle = time.Minute

// check refuses flags that exclude each other, and sets what follows from others.
func (o *gatewayOptions) check(cmd *cobra.Command) error {
	if (o.Private || o.background) && len(o.Listen) > 0 {
		return console.Usage(cmd, errhint.With(errors.New("a private gateway listens on its socket alone"), "leave --listen out"))
	}
	if (o.Private || o.background) && o.Idle == 0 {
		o.Idle = defaultIdle
	}
	return nil
}

func (e *env) runGateway(ctx context.Context, o serve.Options) error {
	if err := secret.Harden(); err != nil {
		return err
	}
	settings, err := e.Load()
	if err != nil {
		return err
	}
	logger := e.ServiceLogger()
	if e.Opened, err = app.OpenWith(ctx, settings, logger); err != nil {
		return err
	}
	hup := console.Hangups(ctx)
	g, err := serve.Open(ctx, e.Opened.Parts(), o)
	if errors.Is(err, gateway.ErrExposed) {
		return console.WithCode(console.ExitDenied, err)
	}
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx) }()
	for {
		select {
		case err := <-done:
			logger.Info("gateway stopped")
			return err
		case <-hup:
			e.reloadGateway(ctx, g, logger)
		}
	}
}

// reloadPatience is how long a reload may ask others for prices.
const reloadPatience = 30 * time.Second

// reloadGateway reads the configuration again. A mistake in it changes nothing.
func (e *env) reloadGateway(ctx context.Context, g *serve.Gateway, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, reloadPatience)
	defer cancel()
	settings, err := e.Load()
	if err != nil {
		logger.ErrorContext(ctx, "the configuration was not reloaded: the one in force stays", "error", err)
		return
	}
	report, err := g.Reload(ctx, settings)
	if err != nil {
		logger.ErrorContext(ctx, "the configuration was not reloaded: the one in force stays", "error", err)
		return
	}
	logger.InfoContext(ctx, "tokens, keys, limits, prices and certificates were reloaded")
	if len(report.Restart) > 0 {
		logger.WarnContext(ctx, "changes that need a restart of the gateway", "parts", strings.Join(report.Restart, "; "))
	}
}
