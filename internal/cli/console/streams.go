package console

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Terminal is the program's outside: streams and environment.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// IsTerminal reports whether a person sees what is written to Out.
	IsTerminal bool
}

// System is the process's own terminal.
func System() *Terminal {
	return &Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		IsTerminal: term.IsTerminal(int(os.Stdout.Fd()))}
}
