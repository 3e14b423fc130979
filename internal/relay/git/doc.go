// Package git runs the host's git where nothing that an agent wrote can steer
// it: in bare repositories of our own, with an environment made from nothing,
// without hooks, filters, helpers or configuration files, in a process without
// a network and with limits. What comes out of it is bounded.
//
// It never enters a directory that an agent can write: git executes programs
// that a repository's configuration names.
package git
