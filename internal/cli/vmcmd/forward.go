package vmcmd

import (
	"context"
	"os"
	"slices"
)

// forwarded are the verbs that work inside the virtual machine where this system cannot
// make sandboxes.
var forwarded = []string{"claude", "codex", "gemini", "opencode", "openclaw", "shell", "run", "agent"}

// Forwards reports whether a verb can be carried out in the virtual machine of a profile:
// there is one in the configuration, and the verb works in the project.
func Forwards(h *Host, verb string) bool {
	c := &command{Host: h}
	file, _, err := c.load()
	return err == nil && slices.Contains(forwarded, verb) && len(file.VM().Profiles) > 0
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
	argv, err := m.Enter(ctx, cwd, args)
	if err != nil {
		return err
	}
	return c.run(ctx, argv)
}
