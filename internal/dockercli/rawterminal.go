package dockercli

import (
	"context"
	"errors"
	"os"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/terminal"
)

// rawTerminal is this process's terminal in raw mode while a command inside uses it.
type rawTerminal struct {
	size  machine.Size
	sizes <-chan machine.Size // each new size; nil if output is no terminal
	leave func()              // restores the terminal
}

// openRawTerminal puts the terminal into raw mode if there is input, and follows its
// size if output is shown on one.
func (c *cli) openRawTerminal(stdin bool) (*rawTerminal, error) {
	w := &rawTerminal{size: terminal.Usual(), leave: func() {}}
	if err := c.checkTerminal(stdin, true); err != nil {
		return nil, err
	}
	screen, isFile := c.Out.(*os.File)
	if !isFile || !term.IsTerminal(int(screen.Fd())) {
		return w, nil
	}
	w.size = terminal.Size(screen)
	w.sizes, w.leave = terminal.Follow(screen)
	if !stdin {
		return w, nil
	}
	keys, _ := c.In.(*os.File)
	before, err := term.MakeRaw(int(keys.Fd()))
	if err != nil {
		w.leave()
		return nil, err
	}
	stop := w.leave
	w.leave = func() {
		stop()
		_ = term.Restore(int(keys.Fd()), before)
	}
	return w, nil
}

// checkTerminal refuses -it where standard input is no terminal.
func (c *cli) checkTerminal(stdin, tty bool) error {
	keys, isFile := c.In.(*os.File)
	if !stdin || !tty || isFile && term.IsTerminal(int(keys.Fd())) {
		return nil
	}
	return &plainError{errors.New("the input device is not a TTY")}
}

// show sends the terminal's size to a running command, now and at each change. It
// sends another size first, so that the program redraws.
func (w *rawTerminal) show(ctx context.Context, m *machine.Machine, id string) {
	if w.sizes == nil {
		return
	}
	next := machine.Size{Rows: w.size.Rows + 1, Cols: w.size.Cols + 1}
	for _, size := range []machine.Size{next, w.size} {
		if m.Resize(ctx, id, size) != nil {
			return
		}
	}
	for {
		select {
		case size := <-w.sizes:
			if m.Resize(ctx, id, size) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
