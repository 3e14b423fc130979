// Package machine is the host's half of the wire: it runs commands in one
// sandbox, reaches its files and its loopback ports, whatever runtime made it.
// It needs nothing but a way to dial, and trusts nothing that comes back.
//
// Lifecycle (create, start, stop, remove) is package sandbox's, and what an
// agent may ask for is package tool's.
package machine
