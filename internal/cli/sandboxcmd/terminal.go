package sandboxcmd

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/terminal"
)

// connectTerminal gives a command a terminal: of the size of ours, and changing
// with it. If the user types into it, every key goes inside, Ctrl-C too. The
// returned function gives our terminal back.
func (e *env) connectTerminal(o commandOptions, command *machine.Command) (restore func(), err error) {
	if !o.tty {
		return func() {}, nil
	}
	size := terminal.Usual()
	command.TTY = &size
	if kind := e.Getenv("TERM"); kind != "" && !slices.ContainsFunc(command.Env, isTerm) {
		command.Env = append(command.Env, "TERM="+kind)
	}
	screen, ok := e.Out.Writer.(*os.File)
	if !ok || !term.IsTerminal(int(screen.Fd())) {
		return func() {}, nil
	}
	size = terminal.Size(screen)
	sizes, stop := terminal.Follow(screen)
	command.Resize = sizes
	keys, ok := e.In.(*os.File)
	if command.Stdin == nil || !ok || !term.IsTerminal(int(keys.Fd())) {
		return stop, nil
	}
	before, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		stop()
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return func() {
		stop()
		_ = term.Restore(int(keys.Fd()), before)
	}, nil
}

// AttachTerminal gives a command the terminal of the command line, as --tty does. The
// returned function gives ours back.
func AttachTerminal(c *console.Env, command *machine.Command) (restore func(), err error) {
	return (&env{c}).connectTerminal(commandOptions{tty: true}, command)
}

// CommandEnd turns a command's end into the end of the program.
func CommandEnd(command *machine.Command, result *machine.Result, err error) error {
	return commandEnd(command, result, err)
}

func isTerm(variable string) bool { return strings.HasPrefix(variable, "TERM=") }
