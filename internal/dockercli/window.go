package dockercli

import (
	"context"
	"errors"
	"os"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/terminal"
)

// window is our terminal while a command inside has it.
type window struct {
	size  machine.Size
	sizes <-chan machine.Size // each new one; nil if nobody could see it
	leave func()              // gives it back
}

// openWindow hands every key over if there is input, and follows the size of
// our terminal if we show the output on one.
func (c *cli) openWindow(stdin bool) (*window, error) {
	w := &window{size: terminal.Usual(), leave: func() {}}
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

// checkTerminal wants keys where a command is to have both a terminal and input.
func (c *cli) checkTerminal(stdin, tty bool) error {
	keys, isFile := c.In.(*os.File)
	if !stdin || !tty || isFile && term.IsTerminal(int(keys.Fd())) {
		return nil
	}
	return &plainError{errors.New("the input device is not a TTY")}
}

// show gives a command that runs already the window's size, now and later. It
// is made another size first, so that a program draws everything anew.
func (w *window) show(ctx context.Context, m *machine.Machine, id string) {
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
