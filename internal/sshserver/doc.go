// Package sshserver is an SSH server for one sandbox. It runs on the host, on a
// connection that the caller brings, and listens nowhere. Sessions become commands in the
// sandbox, the subsystem sftp is a program inside, and a forwarded port is one of the
// sandbox's loopback interface. The sandbox itself has no SSH server and no key.
//
// One key may log in. Forwarding towards the client (-R), agent and X11 forwarding are
// refused: each would give the sandbox a way to the person's machine.
package sshserver
