// Package provide makes sandboxes ready: it reads the settings, opens the state
// directory, and turns a session into a running sandbox: plan, prepare, ensure.
// It chooses the runtime, and is the only importer of runtime/docker and
// runtime/linux besides the wiring.
package provide

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/trust"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/linux"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// LoadOptions say where the configuration is looked for.
type LoadOptions struct {
	Getenv     func(string) string
	ConfigPath string       // named on the command line; "" searches
	OwnConfig  bool         // look for the file where only its owner puts one
	Logger     *slog.Logger // nil discards
	// Runtimes are the backends that the program brings along, beside those of every one.
	Runtimes map[string]OpenRuntime
}

// Settings are the configuration in force and where it came from. They need no
// state directory and no engine.
type Settings struct {
	Config      *config.Config
	Location    config.Location
	Project     *trust.Found // the file of the working directory; nil if there is none
	Paths       config.Paths
	Notices     []string // what a person should know about the installation
	Getenv      func(string) string
	PackageRoot string                 // the directory whose packages images are made of; tests have another than "/"
	Runtimes    map[string]OpenRuntime // see LoadOptions
	environment config.Environment
	stamp       string
	images      func() (*rootfs.Store, error)
	linux       func() (*linux.Runtime, error)
}

// Environment is what the configuration is looked for in.
func Environment(o LoadOptions) (config.Environment, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return config.Environment{}, errhint.With(fmt.Errorf("home directory: %w", err), "set HOME")
	}
	cwd, err := os.Getwd()
	if err != nil && !o.OwnConfig {
		return config.Environment{}, fmt.Errorf("working directory: %w", err)
	}
	return config.Environment{Getenv: o.Getenv, Home: home, Cwd: cwd, Explicit: o.ConfigPath, OwnOnly: o.OwnConfig}, nil
}

// Load finds and reads the configuration.
func Load(o LoadOptions) (*Settings, error) {
	environment, err := Environment(o)
	if err != nil {
		return nil, err
	}
	return load(environment, o.Runtimes)
}

func load(environment config.Environment, runtimes map[string]OpenRuntime) (*Settings, error) {
	stamp := stampOf(environment) // before it is read: what changes meanwhile is seen later
	paths, err := environment.Paths()
	if err != nil {
		return nil, err
	}
	notices, err := PrivateState(environment)
	if err != nil {
		return nil, err
	}
	opened, err := trust.Open(environment)
	if err != nil {
		return nil, err
	}
	return (&Settings{
		Config: opened.Config, Notices: notices, Location: opened.Location, Project: opened.Found, Paths: paths,
		Getenv: environment.Getenv, PackageRoot: "/", environment: environment, stamp: stamp, Runtimes: runtimes,
	}).withLinux(), nil
}

// PrivateState makes sure that no other user can look into the state directory,
// which holds configuration, keys and records.
func PrivateState(env config.Environment) (notices []string, err error) {
	paths, err := env.Paths()
	if err != nil {
		return nil, err
	}
	dir := paths.AtollState
	mode, err := hostpath.MakePrivate(dir)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if mode != 0 {
		notices = append(notices, fmt.Sprintf("the state directory %s had mode %04o, which let other users in; it has 0700 now", dir, mode))
	}
	return notices, nil
}

// Subject names the agent and session that a call is for.
type Subject struct {
	AgentID       string
	SessionKey    string
	Account       string
	Adjust        func(*config.Agent)
	MostSandboxes int   // sandboxes that the account may have; 0 is no limit
	Temporary     bool  // the private copy ends with the sandbox
	Memory        int64 // the limit where none is configured; 0 is the machine's default
	Exact         bool  // a sandbox that was made with other settings than Adjust asks for is refused
	Made          bool  // a program made it through the gateway's API; agent api has no others
	// Amend, if set, adds to the plan, or refuses it, when the host's directories are
	// there and before the sandbox is made.
	Amend func(context.Context, *plan.Plan) error
	// KeepsShape says that Amend adds nothing that a sandbox is made with, so that one may
	// come out of a pool.
	KeepsShape bool
}

// Plan decides about a session's sandbox without making anything.
func (s *Settings) Plan(who Subject) (*plan.Plan, error) { return plan.Make(s.request(who)) }

// Alone returns the same agent in a new session, which has a sandbox of its own.
func (s *Settings) Alone(who Subject) (Subject, error) {
	agent, err := s.request(who).Agent()
	if err != nil {
		return who, err
	}
	who.AgentID, who.SessionKey, who.Temporary = "", "agent:"+agent+":run-"+strings.ToLower(rand.Text()), true
	return who, nil
}

func (s *Settings) request(who Subject) plan.Request {
	return plan.Request{
		Config: s.Config, Paths: s.Paths, Getenv: s.Getenv,
		AgentID: who.AgentID, SessionKey: who.SessionKey, Account: who.Account, Adjust: who.Adjust, Temporary: who.Temporary, Memory: who.Memory,
	}
}
