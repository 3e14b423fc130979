package cli

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/machine"
)

// usualSize is that of a terminal that does not say.
var usualSize = machine.Size{Rows: 24, Cols: 80}

// connectTerminal gives a command a terminal: of the size of ours, and changing
// with it. If the user types into it, every key goes inside, Ctrl-C too. The
// returned function gives our terminal back.
func (e *env) connectTerminal(o commandOptions, command *machine.Command) (restore func(), err error) {
	if !o.tty {
		return func() {}, nil
	}
	size := usualSize
	command.TTY = &size
	if kind := e.Getenv("TERM"); kind != "" && !slices.ContainsFunc(command.Env, isTerm) {
		command.Env = append(command.Env, "TERM="+kind)
	}
	screen, ok := e.out.Writer.(*os.File)
	if !ok || !term.IsTerminal(int(screen.Fd())) {
		return func() {}, nil
	}
	size = sizeOf(screen)
	sizes, stop := watchSize(screen)
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

func isTerm(variable string) bool { return strings.HasPrefix(variable, "TERM=") }

func sizeOf(screen *os.File) machine.Size {
	cols, rows, err := term.GetSize(int(screen.Fd()))
	if err != nil || cols <= 0 || rows <= 0 || cols > 1<<15 || rows > 1<<15 {
		return usualSize
	}
	return machine.Size{Rows: uint16(rows), Cols: uint16(cols)}
}

// watchSize tells every new size of the terminal, until stop.
func watchSize(screen *os.File) (sizes <-chan machine.Size, stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	out, done := make(chan machine.Size), make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
			case <-done:
				return
			}
			select {
			case out <- sizeOf(screen):
			case <-done:
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(changed)
		close(done)
	}
}
