package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
)

// env is one command line at work: the terminal, the global flags, and what the
// verbs open when they need it.
type env struct {
	*Terminal
	configPath string
	verbose    bool
	opened     *app.App
}

func (e *env) logger() *slog.Logger {
	level := slog.LevelWarn
	if e.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(e.Err, &slog.HandlerOptions{Level: level}))
}

// load reads the configuration.
func (e *env) load() (*app.Settings, error) {
	return app.Load(app.Options{Getenv: e.Getenv, ConfigPath: e.configPath})
}

// open opens the installation; it is closed when the command line ends.
func (e *env) open(ctx context.Context) (*app.App, error) {
	if e.opened != nil {
		return e.opened, nil
	}
	a, err := app.Open(ctx, app.Options{Getenv: e.Getenv, ConfigPath: e.configPath, Logger: e.logger()})
	if err != nil {
		return nil, err
	}
	e.opened = a
	return a, nil
}

func (e *env) close() {
	if e.opened != nil {
		e.opened.Close()
	}
}

// line is a problem of the configuration as one line for a person.
func (e *env) line(p config.Problem) string {
	text := "error: " + printable(p.String())
	if p.Hint != "" {
		text += " (hint: " + printable(p.Hint) + ")"
	}
	return text
}

// whoFlags are the flags that name an agent and a session.
type whoFlags struct{ agent, session, account string }

func (w *whoFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.agent, "agent", "", "agent `id` (default: the session's agent, or the default one)")
	flags.StringVar(&w.session, "session", "", "session `key` (default: the agent's main session)")
	flags.StringVar(&w.account, "account", "", "billing account; accounts never share a sandbox")
}

func (w *whoFlags) who() app.Who {
	return app.Who{AgentID: w.agent, SessionKey: w.session, Account: w.account}
}

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}
