package agentcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/cli/egresscmd"
	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/branch"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// options are the flags of an agent's verb.
type options struct {
	task          string
	added         []string // after --
	print, stay   bool
	model         string
	budget        float64
	access, image string
	show          []string
	egress        egresscmd.Flags
	asJSON        bool
	accept        bool
	branch        string
	key           branch.Key // of branch
}

// NewCommand returns the constructor of the verb of a built-in preset, which a file
// of the installation may replace.
func NewCommand(id string) func(*console.Env) *cobra.Command {
	return func(c *console.Env) *cobra.Command {
		p, err := preset.Find(presetsOf(c), id)
		if err != nil {
			panic(err) // a test makes all of them
		}
		return newCommand(&env{c}, p)
	}
}

// AddOwn adds the verbs of the installation's own presets to a command line that has
// the others.
func AddOwn(c *console.Env, root *cobra.Command, group string) {
	for _, p := range presetsOf(c) {
		_, err := preset.Find(preset.Builtin(), p.ID)
		at := slices.IndexFunc(root.Commands(), func(cmd *cobra.Command) bool { return cmd.Name() == p.ID })
		if err == nil {
			continue
		}
		if at >= 0 {
			c.Notice("preset " + p.ID + " has the name of another verb, and cannot be called")
			continue
		}
		cmd := newCommand(&env{c}, p)
		cmd.GroupID = group
		root.AddCommand(cmd)
	}
}

// presetsOf returns the presets of the installation, or only the built-in ones, with a
// notice, where those of the installation cannot be read.
func presetsOf(c *console.Env) []*preset.Preset {
	environment, err := provide.Environment(provide.LoadOptions{Getenv: c.Getenv, OwnConfig: true})
	if err != nil {
		return preset.Builtin()
	}
	paths, err := environment.Paths()
	if err != nil {
		return preset.Builtin()
	}
	list, err := preset.All(paths.AtollState)
	if err != nil {
		c.Notice(err.Error() + " (" + errhint.Of(err) + ")")
		return preset.Builtin()
	}
	return list
}

func newCommand(e *env, p *preset.Preset) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: p.ID + " [flags] [TASK] [-- ARGUMENT…]", Short: p.Description + " in the sandbox of this directory",
		Long: longText(p), Example: exampleText(p),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(cmd, p, args); err != nil {
				return err
			}
			return (&start{env: e, preset: p, options: &o}).do(cmd.Context())
		},
	}
	if p.Commands {
		cmd.Use = p.ID + " [flags] [-- COMMAND [ARGUMENT…]]"
	}
	o.addFlags(cmd, p)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command, p *preset.Preset) {
	flags := cmd.Flags()
	flags.StringVar(&o.access, "access", "", "what is seen of the directory: `rw` is the directory itself, without a way back")
	flags.BoolVar(&o.accept, "accept", false, "apply what passes the gate when it ends")
	flags.StringVar(&o.branch, "branch", "", "give the commits to the relay when it ends, which judges and sends them to branch sandbox/`NAME`")
	o.egress.Add(cmd)
	flags.StringArrayVar(&o.show, "show", nil, "show this `path` of the host too, read-only and at the same place (again for more)")
	flags.StringVar(&o.image, "image", "", "image to make the sandbox from (default: the agent's own, or the host's programs)")
	if p.Args.Task != nil {
		flags.BoolVarP(&o.print, "print", "p", false, "carry TASK out without a person and print the answer, as without the flag; TASK is read from standard input if it is not given")
		flags.BoolVar(&o.stay, "stay", false, "begin with TASK at the terminal, and stay there")
		flags.BoolVar(&o.asJSON, "json", false, "print one JSON object about TASK instead of its answer")
	}
	if p.Login != nil {
		flags.StringVar(&o.model, "model", "", "`model` that the agent asks, NAME or PROVIDER/NAME (default: the agent's own choice)")
		flags.Float64Var(&o.budget, "budget", 0, "most US `dollars` that it may spend on models")
	}
}

// read takes the arguments apart: at most one task, and after -- what is passed on.
func (o *options) read(cmd *cobra.Command, p *preset.Preset, args []string) error {
	words := args
	if at := cmd.ArgsLenAtDash(); at >= 0 {
		words, o.added = args[:at], args[at:]
	}
	switch {
	case p.Commands && len(words) > 0:
		return console.Usage(cmd, errhint.With(fmt.Errorf("%q comes before --", words[0]), "write the command after --"))
	case len(words) > 1:
		return console.Usage(cmd, errhint.With(errors.New("there is more than one task"), "put the task between quotation marks; arguments for "+p.Program+" come after --"))
	case len(words) == 1 && strings.TrimSpace(words[0]) == "":
		return console.Usage(cmd, errors.New("the task is empty"))
	case len(words) == 1:
		o.task = words[0]
	}
	return o.check(cmd)
}

func (o *options) check(cmd *cobra.Command) error {
	if err := o.checkBranch(cmd); err != nil {
		return err
	}
	switch config.Access(o.access) {
	case "", config.AccessRO, config.AccessRW, config.AccessNone, config.AccessOverlay:
	default:
		return console.Usage(cmd, errhint.With(fmt.Errorf("--access %q is not known", o.access), "use overlay, none, ro or rw"))
	}
	if o.print && o.stay || o.asJSON && o.stay {
		return console.Usage(cmd, errors.New("--stay goes with neither --print nor --json"))
	}
	return console.FirstOf(console.CheckBudget(o.budget), o.egress.Check(cmd))
}

func longText(p *preset.Preset) string {
	text := strings.ToUpper(p.Title[:1]) + p.Title[1:] + ` in the sandbox of this directory.

The sandbox belongs to the top level of the repository, or to the working
directory where there is none, and is kept for the next call; several terminals
can use it at once. The home inside is kept too, and is none of yours.`
	if p.Login == nil {
		return text
	}
	return text + `

Without TASK it runs at the terminal; with TASK it carries that one out and
prints the answer. Models are asked through the proxy: the key stays on the host.
Arguments after -- go to the program.`
}

func exampleText(p *preset.Preset) string {
	if p.Commands {
		return "  atoll " + p.ID + "\n  atoll " + p.ID + " -- make test"
	}
	lines := []string{"  atoll " + p.ID, "  atoll " + p.ID + ` "fix the flaky test"`, "  atoll " + p.ID + ` --model NAME --budget 2 -p "write tests for the cart"`}
	if p.Login == nil {
		lines = lines[:1]
	}
	return strings.Join(lines, "\n")
}
