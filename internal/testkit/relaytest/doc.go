// Package relaytest is what the relay talks to, for tests: a git server that
// speaks smart HTTP through git's own http-backend, asks for a credential and
// notes what was pushed, and a server that behaves like GitHub's API does in the
// requests that the relay makes.
package relaytest
