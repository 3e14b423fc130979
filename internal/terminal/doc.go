// Package terminal tells the size of the terminal that a person sits at, for
// commands inside that are to have one of the same size, and keeps what programs
// inside wrote from acting on it.
package terminal
