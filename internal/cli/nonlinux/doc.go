// Package nonlinux is the command line on systems other than Linux. Sandboxes need
// Linux; here configurations are checked, and work is given to a gateway on a
// Linux machine. It imports only what compiles everywhere (`make cross`).
package nonlinux
