package agentcmd

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/sandboxcmd"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
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
	report  report
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
	login, err := s.chooseLogin()
	if err != nil {
		return err
	}
	if err := s.provide(ctx); err != nil {
		return err
	}
	defer s.box.Release()
	if login == nil {
		return s.end(ctx, s.execute(ctx))
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
	if s.program, err = s.findProgram(ctx); err != nil {
		return err
	}
	if s.dir, err = s.app.Directories().Record(ctx, s.dir, s.program.image); err != nil {
		return err
	}
	if s.dir.Moved != "" {
		s.Notice("this directory was " + s.dir.Moved + ": its sandbox and changes came along")
	}
	return nil
}

// provide makes the sandbox ready.
func (s *start) provide(ctx context.Context) (err error) {
	if config.Access(s.access) == config.AccessRW {
		s.Notice("--access rw: what is changed inside is changed in " + s.dir.Path + " at once, and nothing is held for review")
	}
	done := s.Progress("preparing the sandbox")
	s.box, err = s.app.ProvideDirectory(ctx, s.dir, provide.DirectoryOptions{
		Access: config.Access(s.access), Image: s.program.image, Programs: s.program.shown, Exact: !s.preset.Commands || s.access != "" || s.image != "",
	})
	done()
	if errors.Is(err, sandbox.ErrBusy) {
		err = errhint.With(err, "end what runs in this directory's sandbox, which was made with other settings; `atoll ps` shows it")
	}
	if err != nil {
		return err
	}
	for _, n := range s.box.Notices {
		s.Notice(n)
	}
	return nil
}

// values are what the preset's texts are filled in with.
func (s *start) values() preset.Values {
	return preset.Values{Task: s.task, Model: s.model, Home: provide.DirectoryHome, Workspace: s.box.Plan.Spec.Workdir, BaseURL: modelURL}
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
	env["HOME"] = provide.DirectoryHome
	env["PATH"] = s.program.searchPath(cmp.Or(s.box.Plan.SearchPath, provide.DefaultPath))
	return &machine.Command{
		Argv: argv, Env: provide.CommandEnv(s.box.Plan, env), Dir: path.Join(s.box.Plan.Spec.Workdir, s.dir.Sub), Grant: s.grant,
		Stdin: s.In, Stdout: s.CommandOut(), Stderr: s.CommandErr(),
	}
}
