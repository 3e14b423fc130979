package sshserver

import (
	"errors"
	"io"
)

// Command is what a session runs in the sandbox.
type Command struct {
	ID             string // names it to Signal
	Argv, Env      []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	TTY            *Size // nil: no terminal
	Resize         <-chan Size
}

// Size is the size of a terminal.
type Size struct{ Rows, Cols uint16 }

// Result is how a command ended.
type Result struct {
	ExitCode int
	Signal   string // that ended it; "" if none did
	Reason   string // why it was ended, if the sandbox did that
}

// ErrRefused is a port of the sandbox on which nothing listens.
var ErrRefused = errors.New("connection refused")

// exitNotStarted is the exit code of a command that could not be started.
const exitNotStarted = 125
