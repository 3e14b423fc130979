// Package vmcmd has the verb `atoll vm`, which keeps a virtual machine for sandboxes. It
// works on every system that Lima runs on.
package vmcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/vm"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

// Host is what the verb needs of the command line around it.
type Host struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Home     string
	System   string               // GOOS
	Arch     string               // GOARCH
	Config   func() string        // the file that was named, or ""
	Exit     func(code int) error // the error that a command's exit code is
}

// command is the verb at work.
type command struct {
	*Host
	profile string
}

// New returns the command `atoll vm`.
func New(h *Host) *cobra.Command {
	c := &command{Host: h}
	cmd := &cobra.Command{
		Use: "vm", Short: "Keep a virtual machine that sandboxes run in, where the system is not Linux",
		Long: `Keep a virtual machine that sandboxes run in, where the system is not Linux. Lima runs it
(brew install lima). The profile in the configuration file says what it is to be.`,
		Example: `  atoll vm init --project ~/Projects/shop --yes
  atoll vm up
  atoll vm status`,
	}
	cmd.PersistentFlags().StringVar(&c.profile, "profile", "", "`name` of the profile (default: vm.profile of the file, or the only one)")
	cmd.AddCommand(c.newInit(), c.newUp(), c.newDown(), c.newRestart(), c.newStatus(), c.newShow(), c.newShell(), c.newSSH(), c.newOnboard(), c.newLogs(), c.newApply(), c.newUndo(), c.newDelete())
	return cmd
}

// Open returns the manager of the profile that the configuration means; nil if it has none.
func Open(h *Host) (*vm.Manager, error) {
	c := &command{Host: h}
	file, _, err := c.load()
	if err != nil || len(file.VM().Profiles) == 0 {
		return nil, err
	}
	m, _, err := c.open()
	return m, err
}

// load returns the configuration of this person.
func (c *command) load() (*config.Config, config.Environment, error) {
	cwd, err := os.Getwd()
	env := config.Environment{Getenv: c.Getenv, Home: c.Home, Cwd: cwd, Explicit: c.Config()}
	if err != nil {
		return nil, env, err
	}
	at, err := config.Find(env)
	if err != nil {
		return nil, env, err
	}
	file, err := config.Open(env, at)
	return file, env, err
}

// open returns the manager of the profile that is meant.
func (c *command) open() (*vm.Manager, vmkeys.Origins, error) {
	file, env, err := c.load()
	if err != nil {
		return nil, nil, err
	}
	name, err := file.VM().Choose(c.profile)
	if err != nil {
		return nil, nil, err
	}
	p, origins, err := vmkeys.Merge(file.VM(), name, c.Getenv)
	if err != nil {
		return nil, nil, err
	}
	paths, err := env.Paths()
	if err != nil {
		return nil, nil, err
	}
	return &vm.Manager{
		Profile: p, Host: profile.Host{Home: c.Home, Base: env.Cwd, Private: []string{paths.AtollState}},
		StateDir: paths.AtollState, System: c.System, Arch: c.Arch, Log: terminal.Harmless(c.Err), Getenv: c.Getenv,
		NeedsDocker: needsDocker(file),
	}, origins, nil
}

// needsDocker reports whether an agent of the configuration has an engine's backend.
func needsDocker(file *config.Config) bool {
	for _, id := range file.Agents() {
		if a, err := file.Resolve(id); err == nil && a.Sandbox.Backend == "docker" {
			return true
		}
	}
	return false
}

// with makes a command that works on the virtual machine.
func (c *command) with(cmd *cobra.Command, do func(context.Context, *vm.Manager, []string) error) *cobra.Command {
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		m, _, err := c.open()
		if err != nil {
			return err
		}
		return do(cmd.Context(), m, args)
	}
	return cmd
}

func (c *command) newUp() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "up", Short: "Make, start and set up the virtual machine", Args: cobra.NoArgs, Example: "  atoll vm up",
		Long: `Make the virtual machine if there is none, start it, compare its mounts with the profile
and do the steps of the set-up. What is as it should be is left: a second time changes
nothing. A step that failed is done again the next time.`,
	}
	cmd.Flags().StringVar(&from, "from", "", "begin with this `step`")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, _ []string) error { return m.Up(ctx, from) })
}

func (c *command) newDown() *cobra.Command {
	var force bool
	cmd := &cobra.Command{Use: "down", Short: "Stop the virtual machine", Args: cobra.NoArgs, Example: "  atoll vm down"}
	cmd.Flags().BoolVar(&force, "force", false, "stop it at once; what is being written may be lost")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, _ []string) error { return m.Down(ctx, force) })
}

func (c *command) newRestart() *cobra.Command {
	return c.with(&cobra.Command{Use: "restart", Short: "Stop the virtual machine, and bring it up again", Args: cobra.NoArgs, Example: "  atoll vm restart"},
		func(ctx context.Context, m *vm.Manager, _ []string) error {
			return errors.Join(m.Down(ctx, false), m.Up(ctx, ""))
		})
}

func (c *command) newDelete() *cobra.Command {
	var discard bool
	cmd := &cobra.Command{
		Use: "delete", Short: "Remove the virtual machine and its disk", Args: cobra.NoArgs, Example: "  atoll vm delete",
		Long: "Remove the virtual machine and its disk. It is refused while changes wait inside, and while it is stopped, because then nobody knows.",
	}
	cmd.Flags().BoolVar(&discard, "discard", false, "also with changes inside that nobody decided about")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, _ []string) error { return m.Delete(ctx, discard) })
}

func (c *command) newStatus() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "status", Short: "Say how the virtual machine is, and how it differs from its profile", Args: cobra.NoArgs, Example: "  atoll vm status"}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c.with(cmd, func(ctx context.Context, m *vm.Manager, _ []string) error {
		s, err := m.Status(ctx)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(c.Out).Encode(s)
		}
		return c.showStatus(s)
	})
}

func (c *command) showStatus(s *vm.Status) error {
	w := tabwriter.NewWriter(terminal.Harmless(c.Out), 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%s\n", s.Name, s.State)
	fmt.Fprintf(w, "lima\t%s, from %s\n", s.Lima, s.File)
	if s.Mounts != "" {
		fmt.Fprintf(w, "mounts\t%s\ngateway\t%s\n", s.Mounts, s.Gateway)
	}
	for _, d := range s.Drift {
		fmt.Fprintf(w, "differs\t%s: %s\n", d.What, d.Remedy)
	}
	for _, step := range s.Steps {
		fmt.Fprintf(w, "step\t%s\t%s\n", step.Name, step.Skip)
	}
	return w.Flush()
}
