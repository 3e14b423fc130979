//go:build linux

package terminal

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/machine"
)

// Usual is the size of a terminal that does not say.
func Usual() machine.Size { return machine.Size{Rows: 24, Cols: 80} }

// Size is how large a terminal is.
func Size(screen *os.File) machine.Size {
	cols, rows, err := term.GetSize(int(screen.Fd()))
	if err != nil || cols <= 0 || rows <= 0 || cols > 1<<15 || rows > 1<<15 {
		return Usual()
	}
	return machine.Size{Rows: uint16(rows), Cols: uint16(cols)}
}

// Follow tells every new size of a terminal, until stop.
func Follow(screen *os.File) (sizes <-chan machine.Size, stop func()) {
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
			case out <- Size(screen):
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
