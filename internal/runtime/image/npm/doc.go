// Package npm finds out which packages of npm a program needs, and fetches them as
// the archives that they are published as. Nothing is unpacked and no script of a
// package runs here: both happen in a sandbox.
//
// The machine's own npm is asked, with its own configuration, so that mirrors,
// credentials and certificates are those that it uses otherwise. Every archive is
// compared with the SHA-512 of the resolved tree.
package npm
