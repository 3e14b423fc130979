package vmcmd

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/terminal"
	"github.com/atoll-run/atoll/internal/vm"
)

// forwarded are the verbs that work inside the virtual machine where this system cannot
// make sandboxes.
var forwarded = []string{"claude", "codex", "gemini", "opencode", "openclaw", "shell", "run", "agent"}

// Forwarded reports whether a verb works inside a virtual machine.
func Forwarded(verb string) bool { return slices.Contains(forwarded, verb) }

// Forwards reports whether a verb can be carried out in the virtual machine of a profile:
// there is one in the configuration, and the verb works in the project.
func Forwards(h *Host, verb string) bool {
	c := &command{Host: h}
	file, _, err := c.load()
	return err == nil && Forwarded(verb) && len(file.VM().Profiles) > 0
}

// Forward carries a verb out inside, in the directory that it was called in: the program
// there has this terminal, its size and its signals. The virtual machine is started if it
// does not run.
func Forward(ctx context.Context, h *Host, args []string) error {
	c := &command{Host: h}
	m, _, err := c.open()
	if err != nil {
		return err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	p, err := m.Enter(ctx, cwd, args)
	if err != nil {
		return err
	}
	err = c.run(ctx, p)
	if m.Profile.Mode == vmkeys.ModeAuto {
		c.applyPassing(ctx, m)
	}
	return err
}

// applyPassing applies what passes after the work inside has ended. What fails is told: the
// exit code is that of the work.
func (c *command) applyPassing(ctx context.Context, m *vm.Manager) {
	applied, err := m.Apply(context.WithoutCancel(ctx), vm.Choice{All: true})
	if err != nil {
		fmt.Fprintf(terminal.Harmless(c.Err), "nothing was applied: %v\n", err)
		return
	}
	if len(applied.Files)+len(applied.Left) > 0 {
		_ = showApplied(c.Err, applied)
	}
}
