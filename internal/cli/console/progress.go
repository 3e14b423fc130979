package console

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// Progress shows on the terminal that something takes longer than a second. It
// writes nothing into a pipe. The returned function ends it.
func (e *Env) Progress(what string) func() {
	return e.ProgressOf(func() string { return what })
}

// ProgressOf is progress whose words change.
func (e *Env) ProgressOf(what func() string) func() {
	f, ok := e.Err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		start := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for shown := false; ; shown = true {
			select {
			case <-stop:
				if shown {
					fmt.Fprint(f, "\r\x1b[K")
				}
				return
			case <-tick.C:
				fmt.Fprintf(f, "\r\x1b[K%s … %ds", what(), int(time.Since(start).Seconds()))
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
