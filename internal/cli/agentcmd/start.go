package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/agentcmd/mcpservers"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/dirsandbox"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/model/service"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// start is one use of a preset.
type start struct {
	*env
	*options
	preset  *preset.Preset
	app     *app.App
	dir     *directory.Directory
	program program
	box     *provide.ReadySandbox
	model   string // id that the program is given; "" is its own choice
	run     string // id of the run that models are billed to; "" without models
	grant   string
	// modelURL is where the grant has models; "" without.
	modelURL string
	// grantEnv are variables that go with the grant.
	grantEnv map[string]string
	servers  []mcpservers.Server // of MCP, that work inside
	notes    []string            // that were said before the program began
	report   report
}

// do carries a use out.
func (s *start) do(ctx context.Context) error {
	if s.preset.Refused != "" {
		return console.WithCode(console.ExitDenied, errors.New(s.preset.Refused))
	}
	if err := s.readTask(); err != nil {
		return err
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	login, err := s.chooseLogin(ctx)
	if err != nil {
		return err
	}
	if err := s.provide(ctx); err != nil {
		return err
	}
	defer s.box.Release()
	if login == nil {
		return s.end(ctx, s.executeWithEgress(ctx, nil))
	}
	return s.end(ctx, s.withModels(ctx, login))
}

// open finds the directory and the program.
func (s *start) open(ctx context.Context) (err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	if s.app, err = s.Open(ctx); err != nil {
		return err
	}
	if s.dir, err = s.app.Directory(cwd); err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	if err = s.showPaths(); err != nil {
		return err
	}
	if s.program, err = s.findProgram(ctx); err != nil {
		return err
	}
	s.dir, err = dirsandbox.Record(ctx, s.Env, s.app, s.dir, s.program.image)
	return err
}

// provide makes the sandbox ready.
func (s *start) provide(ctx context.Context) (err error) {
	s.box, err = dirsandbox.Provide(ctx, s.Env, s.app, s.dir, provide.DirectoryOptions{
		Access: config.Access(s.access), Image: s.program.image, Programs: s.program.shown, Exact: !s.preset.Commands || s.access != "" || s.image != "" || len(s.show) > 0,
		Adjust: s.adjust,
	})
	if err == nil {
		s.notes = append(s.notes, s.box.Notices...)
	}
	return err
}

// values are what the preset's texts are filled in with.
func (s *start) values() preset.Values {
	return preset.Values{Task: s.task, Model: s.model, Run: s.run, Home: provide.DirectoryHome, Workspace: s.box.Plan.Spec.Workdir, BaseURL: cmp.Or(s.modelURL, service.LocalURL()), Servers: len(s.servers) > 0}
}

// execute runs the program, at the terminal or for one task.
func (s *start) execute(ctx context.Context) error {
	if err := s.writeSettings(ctx); err != nil {
		return err
	}
	command := s.command()
	if s.isAlone() {
		return s.executeTask(ctx, command)
	}
	restore := func() {}
	if s.hasTerminal() {
		var err error
		command.Stdout, command.Stderr = s.Out, s.Err
		if restore, err = sandboxcmd.AttachTerminal(s.Env, command); err != nil {
			return err
		}
	}
	result, err := s.box.Exec(ctx, command)
	restore()
	return sandboxcmd.CommandEnd(command, result, err)
}

// isAlone reports whether one task is carried out without a person.
func (s *start) isAlone() bool { return s.task != "" && !s.stay && s.preset.Args.Task != nil }

// hasTerminal reports whether a person is at both ends.
func (s *start) hasTerminal() bool { return s.IsTerminal && console.IsInteractive(s.In) }

func (s *start) command() *machine.Command {
	v := s.values()
	argv := s.preset.Argv(v, s.isAlone(), s.added)
	if argv[0] == s.preset.Program && s.program.path != "" {
		argv[0] = s.program.path
	}
	env := s.preset.Environment(v)
	for name, value := range s.box.Plan.Env.Passed {
		if _, ours := env[name]; !ours {
			env[name] = value
		}
	}
	for name, value := range s.grantEnv {
		if _, said := env[name]; !said {
			env[name] = value
		}
	}
	env["HOME"] = provide.DirectoryHome
	env["PATH"] = s.program.searchPath(cmp.Or(s.box.Plan.SearchPath, provide.DefaultPath))
	return &machine.Command{
		Argv: argv, Env: provide.CommandEnv(s.box.Plan, env), Dir: path.Join(s.box.Plan.Spec.Workdir, s.dir.Sub), Grant: s.grant,
		Stdin: s.In, Stdout: s.CommandOut(), Stderr: s.CommandErr(),
	}
}
