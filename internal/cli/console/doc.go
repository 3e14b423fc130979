// Package console is what all verbs of the command line share: the terminal and
// its streams, global flags, the opened installation, tables and JSON, and the one
// place where an error becomes a message and an exit code.
package console
