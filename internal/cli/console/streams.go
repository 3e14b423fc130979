package console

import (
	"io"
	"os"
	"slices"
	"syscall"

	"golang.org/x/term"

	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// Terminal is the program's outside: streams and environment.
type Terminal struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// IsTerminal reports whether a person sees what is written to Out.
	IsTerminal bool
	// Runtimes are the backends that the program brings along.
	Runtimes map[string]provide.OpenRuntime
	// HandOver replaces this process with another program that gets the same command
	// line. Nil where that cannot be done.
	HandOver func(program string) error
}

// System is the process's own terminal.
func System() *Terminal {
	return &Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv,
		IsTerminal: term.IsTerminal(int(os.Stdout.Fd())), HandOver: handOver}
}

// handOver executes a program in place of this one.
func handOver(program string) error {
	return syscall.Exec(program, slices.Concat([]string{program}, os.Args[1:]), os.Environ())
}
