package console

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Env is one command line at work: the terminal, the global flags, and what the
// verbs open when they need it.
type Env struct {
	*Terminal
	Out         *output // what Out is
	ConfigPath  string
	Verbose     bool
	Local       bool   // no gateway is asked
	Gateway     string // a gateway elsewhere, by its URL or its context
	Opened      *app.App
	projectSaid bool // the line about the project's file was printed
}

// NewEnv returns the environment of one command line.
func NewEnv(t *Terminal) *Env {
	out := &output{Writer: t.Out}
	terminal := *t
	terminal.Out = out
	return &Env{Terminal: &terminal, Out: out}
}

// Logger writes warnings to standard error as lines for a person, with --verbose
// everything as records.
func (e *Env) Logger() *slog.Logger {
	if e.Verbose {
		return slog.New(slog.NewTextHandler(e.Err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(newLogHandler(e.Err, slog.LevelWarn))
}

// Load reads the configuration. Whatever is in the way of that is an error of
// the configuration.
func (e *Env) Load() (*provide.Settings, error) {
	settings, err := provide.Load(provide.LoadOptions{Getenv: e.Getenv, ConfigPath: e.ConfigPath, Runtimes: e.Runtimes})
	if err != nil {
		return nil, WithCode(ExitUsage, err)
	}
	if program := settings.OtherProgram(); program != "" && e.HandOver != nil {
		if err := e.HandOver(program); err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
	}
	for _, n := range settings.Notices {
		e.Notice(n)
	}
	e.sayProject(settings.Project)
	return settings, nil
}

// Open opens the installation; it is closed when the command line ends.
func (e *Env) Open(ctx context.Context) (*app.App, error) {
	if e.Opened != nil {
		return e.Opened, nil
	}
	settings, err := e.Load()
	if err != nil {
		return nil, err
	}
	e.Opened, err = app.OpenWith(ctx, settings, e.Logger())
	return e.Opened, err
}

// StateDir returns the state directory, whose files it does not read.
func (e *Env) StateDir() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	paths, err := config.Environment{Getenv: e.Getenv, Home: home, Cwd: cwd}.Paths()
	return paths.AtollState, err
}

// OpenAlone opens the installation for one command in a sandbox of its own.
func (e *Env) OpenAlone(ctx context.Context, who provide.Subject) (*app.App, provide.Subject, error) {
	settings, err := e.Load()
	if err != nil {
		return nil, who, err
	}
	if who, err = settings.Alone(who); err != nil {
		return nil, who, err
	}
	e.Opened, err = app.OpenWith(ctx, settings, e.Logger())
	return e.Opened, who, err
}

// Close is called when the process is about to end.
func (e *Env) Close() {
	if e.Opened != nil {
		e.Opened.Leave()
	}
}

// SubjectFlags are the flags that name an agent and a session.
type SubjectFlags struct{ Agent, Session, Account, Scope string }

// Add adds the flags to a command.
func (w *SubjectFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&w.Agent, "agent", "", "agent `id` (default: the session's agent, or the default one)")
	flags.StringVar(&w.Session, "session", "", "session `key` (default: the agent's main session)")
	flags.StringVar(&w.Account, "account", "", "billing account; accounts never share a sandbox")
	ScopeFlag(cmd, &w.Scope)
}

// ScopeFlag adds --scope.
func ScopeFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "scope", "", "who shares the sandbox and its files: `session`, agent or shared (default: as configured, else all sessions of an agent)")
}

// CheckScope refuses what is no scope.
func CheckScope(cmd *cobra.Command, scope string) error {
	switch config.Scope(scope) {
	case "", config.ScopeSession, config.ScopeAgent, config.ScopeShared:
		return nil
	}
	return Usage(cmd, errhint.With(fmt.Errorf("--scope %q is not known", scope), "use session, agent or shared"))
}

// Check refuses empty and malformed names, which would mean the default agent.
func (w *SubjectFlags) Check(cmd *cobra.Command) error {
	for _, name := range []string{"agent", "session", "account"} {
		if err := CheckName(cmd, name); err != nil {
			return err
		}
	}
	return CheckScope(cmd, w.Scope)
}

// CheckName refuses an empty name, which a script's empty variable gives, and
// an agent id of which nothing remains: both would mean the main agent.
func CheckName(cmd *cobra.Command, flag string) error {
	f := cmd.Flags().Lookup(flag)
	if f == nil || !f.Changed {
		return nil
	}
	value := f.Value.String()
	switch isMain := strings.EqualFold(strings.TrimSpace(value), policy.NormalizeAgentID("")); {
	case strings.TrimSpace(value) == "":
		return Usage(cmd, fmt.Errorf("--%s is empty", flag))
	case !utf8.ValidString(value):
		return Usage(cmd, fmt.Errorf("--%s %q is not UTF-8 text", flag, value))
	case flag == "agent" && !isMain && policy.NormalizeAgentID(value) == policy.NormalizeAgentID(""):
		return Usage(cmd, fmt.Errorf("--agent %q has none of the letters, digits, '_' and '-' that ids are made of", value))
	}
	return nil
}

// Who returns the subject that the flags name.
func (w *SubjectFlags) Who() provide.Subject {
	who := provide.Subject{AgentID: w.Agent, SessionKey: w.Session, Account: w.Account}
	if w.Scope != "" {
		who.Adjust = w.Adjust
	}
	return who
}

// Adjust makes the scope that was asked for that of the agent.
func (w *SubjectFlags) Adjust(agent *config.Agent) {
	if w.Scope != "" {
		agent.Sandbox.Scope = config.Scope(w.Scope)
		agent.Origins["sandbox.scope"] = config.Origin{Source: "agent", Path: CommandLine}
	}
}

// JSONFlag adds --json.
func JSONFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}
