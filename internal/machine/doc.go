// Package machine is the host's side of the wire: it runs commands in one sandbox
// and reaches its loopback ports, whatever runtime made it; package guestfs below
// it reaches its files. It needs nothing but a Dialer, and trusts nothing that
// comes back.
//
// Lifecycle (create, start, stop, remove) is package sandbox's, and what an
// agent may use is package tool's.
package machine
