package synccmd

import (
	"context"
	"errors"
	"os"
	"path"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/cli/backend"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
)

// env is the command line at work, with the methods of this package.
type env struct {
	*console.Env
	sync backend.Sync
}

// options are the flags of every verb.
type options struct {
	console.SubjectFlags
	run    string
	tree   string
	asJSON bool
}

func (o *options) add(cmd *cobra.Command) {
	o.SubjectFlags.Add(cmd)
	cmd.Flags().StringVar(&o.run, "run-id", "", "`id` of a run on a directory, which has an overlay of its own")
	cmd.Flags().StringVar(&o.tree, "tree", "", "number of an overlay of the sandbox, or its `path` inside (default: the workspace)")
	console.JSONFlag(cmd, &o.asJSON)
}

// verb is one verb of this group at work.
type verb struct {
	*env
	*options
	cmd     *cobra.Command
	subject api.SyncSubject
}

func (v *verb) ctx() context.Context { return v.cmd.Context() }

// newVerb returns a command whose work is done with an open gate.
func newVerb(e *env, o *options, cmd *cobra.Command, do func(v *verb, args []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := o.Check(cmd); err != nil {
			return err
		}
		v := &verb{env: e, options: o, cmd: cmd}
		if err := v.open(); err != nil {
			return e.ConfigError(err, o.asJSON)
		}
		return withCode(do(v, args))
	}
	o.add(cmd)
	return cmd
}

// open connects to the running gateway or opens the installation, and finds the
// subject.
func (v *verb) open() (err error) {
	if v.sync == nil {
		if v.sync, err = backend.OpenSync(v.ctx(), v.Env); err != nil {
			return err
		}
	}
	v.subject = api.SyncSubject{Run: v.run, Agent: v.Agent, Session: v.Session, Account: v.Account, Scope: v.Scope}
	others := v.Agent + v.Session + v.Account + v.Scope
	if v.run != "" && others != "" {
		return console.Usage(v.cmd, errors.New("--run-id names a sandbox by itself: leave --agent, --session, --account and --scope out"))
	}
	if v.run+others == "" {
		if v.subject.Directory, err = v.directory(); err != nil {
			return err
		}
	}
	return v.chooseTree()
}

// directory returns the directory of the host that the working directory belongs to,
// if it has a sandbox of its own; "" leaves the choice to the default agent.
func (v *verb) directory() (string, error) {
	settings, err := v.Load()
	if err != nil {
		return "", err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	d, err := settings.Directory(cwd)
	if err != nil {
		return "", nil //nolint:nilerr // no directory that can have a sandbox
	}
	if _, err := settings.Directories().Find(d); err != nil {
		if errors.Is(err, directory.ErrNone) {
			return "", nil
		}
		return "", err
	}
	return d.Path, nil
}

// ofRun returns the flag that names the run to another verb.
func (o *options) ofRun() string {
	if o.run == "" {
		return ""
	}
	return " --run-id " + o.run
}

// hint prints the commands that come next, for the same run.
func (v *verb) hint(commands ...string) {
	for i := range commands {
		commands[i] += v.ofRun()
	}
	v.env.hint(commands...)
}

// chooseTree sets the number of the overlay that --tree names.
func (v *verb) chooseTree() error {
	if v.tree == "" {
		return nil
	}
	if n, err := strconv.Atoi(v.tree); err == nil {
		v.subject.Tree = n
		return nil
	}
	all, err := v.sync.Trees(v.ctx(), &v.subject)
	if err != nil {
		return withCode(err)
	}
	for i := range all.Trees {
		if all.Trees[i].Target == path.Clean(v.tree) {
			v.subject.Tree = all.Trees[i].Tree
			return nil
		}
	}
	return console.Usage(v.cmd, errhint.With(errors.New("--tree "+strconv.Quote(v.tree)+" is none of the sandbox's overlays"), "`atoll sync status` lists them"))
}

// state returns the chosen overlay with what changed in it.
func (v *verb) state() (*api.SyncTree, error) {
	all, err := v.sync.Trees(v.ctx(), &v.subject)
	if err != nil {
		return nil, err
	}
	for i := range all.Trees {
		if all.Trees[i].Tree == v.subject.Tree {
			return &all.Trees[i], nil
		}
	}
	return nil, errNoTree(v.subject.Tree)
}
