package cli

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
)

// env is one command line at work: the terminal, the global flags, and what the
// verbs open when they need it.
type env struct {
	*Terminal
	out         *output // what Out is
	configPath  string
	verbose     bool
	local       bool // no gateway is asked
	opened      *app.App
	projectSaid bool // the line about the project's file was printed
}

func newEnv(t *Terminal) *env {
	out := &output{Writer: t.Out}
	terminal := *t
	terminal.Out = out
	return &env{Terminal: &terminal, out: out}
}

func (e *env) logger() *slog.Logger {
	level := slog.LevelWarn
	if e.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(e.Err, &slog.HandlerOptions{Level: level}))
}

// load reads the configuration. Whatever is in the way of that is an error of
// the configuration.
func (e *env) load() (*app.Settings, error) {
	settings, err := app.Load(app.Options{Getenv: e.Getenv, ConfigPath: e.configPath})
	if err != nil {
		return nil, withCode(exitUsage, err)
	}
	for _, n := range settings.Notices {
		e.notice(n)
	}
	e.sayProject(settings.Project)
	return settings, nil
}

// open opens the installation; it is closed when the command line ends.
func (e *env) open(ctx context.Context) (*app.App, error) {
	if e.opened != nil {
		return e.opened, nil
	}
	settings, err := e.load()
	if err != nil {
		return nil, err
	}
	e.opened, err = settings.Open(ctx, e.logger())
	return e.opened, err
}

// openAlone opens the installation for one command in a sandbox that nobody else
// has.
func (e *env) openAlone(ctx context.Context, who app.Subject) (*app.App, app.Subject, error) {
	settings, err := e.load()
	if err != nil {
		return nil, who, err
	}
	if who, err = settings.Alone(who); err != nil {
		return nil, who, err
	}
	e.opened, err = settings.Open(ctx, e.logger())
	return e.opened, who, err
}

// close is called when the process is about to end.
func (e *env) close() {
	if e.opened != nil {
		e.opened.Leave()
	}
}

// whoFlags are the flags that name an agent and a session.
type whoFlags struct{ agent, session, account, scope string }

func (w *whoFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.agent, "agent", "", "agent `id` (default: the session's agent, or the default one)")
	flags.StringVar(&w.session, "session", "", "session `key` (default: the agent's main session)")
	flags.StringVar(&w.account, "account", "", "billing account; accounts never share a sandbox")
	scopeFlag(cmd, &w.scope)
}

// scopeFlag adds --scope.
func scopeFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "scope", "", "who shares the sandbox and its files: `session`, agent or shared (default: as configured, else all sessions of an agent)")
}

// checkScope refuses what is no scope.
func checkScope(cmd *cobra.Command, scope string) error {
	switch config.Scope(scope) {
	case "", config.ScopeSession, config.ScopeAgent, config.ScopeShared:
		return nil
	}
	return usage(cmd, errhint.With(fmt.Errorf("--scope %q is not known", scope), "use session, agent or shared"))
}

// check refuses what would quietly mean somebody else.
func (w *whoFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"agent", "session", "account"} {
		if err := checkName(cmd, name); err != nil {
			return err
		}
	}
	return checkScope(cmd, w.scope)
}

// checkName refuses an empty name, which a script's empty variable gives, and
// an agent id of which nothing remains: both would mean the main agent.
func checkName(cmd *cobra.Command, flag string) error {
	f := cmd.Flags().Lookup(flag)
	if f == nil || !f.Changed {
		return nil
	}
	value := f.Value.String()
	switch isMain := strings.EqualFold(strings.TrimSpace(value), policy.NormalizeAgentID("")); {
	case strings.TrimSpace(value) == "":
		return usage(cmd, fmt.Errorf("--%s is empty", flag))
	case !utf8.ValidString(value):
		return usage(cmd, fmt.Errorf("--%s %q is not UTF-8 text", flag, value))
	case flag == "agent" && !isMain && policy.NormalizeAgentID(value) == policy.NormalizeAgentID(""):
		return usage(cmd, fmt.Errorf("--agent %q has none of the letters, digits, '_' and '-' that ids are made of", value))
	}
	return nil
}

func (w *whoFlags) who() app.Subject {
	who := app.Subject{AgentID: w.agent, SessionKey: w.session, Account: w.account}
	if w.scope != "" {
		who.Adjust = w.adjust
	}
	return who
}

// adjust makes the scope that was asked for that of the agent.
func (w *whoFlags) adjust(agent *config.Agent) {
	if w.scope != "" {
		agent.Sandbox.Scope = config.Scope(w.scope)
		agent.Origins["sandbox.scope"] = config.Origin{Source: "agent", Path: commandLine}
	}
}

// jsonFlag adds --json.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}
