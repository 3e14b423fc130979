// Package spawn starts processes for the guest. It does not wait for them.
//
// It does two things that the standard library does not. It lowers resource limits in
// the new process before the program runs: those limits are the mark by which the guest
// recognises a process's descendants (see package proc, Lineage), and a mark set
// afterwards would come too late for a program that forks at once. And it never waits
// for a new process without a timeout: until the program runs, every process in the
// sandbox can stop it, and with the standard library's vfork the thread that starts it
// would be blocked, and soon the whole guest.
//
// The new process shares memory with the guest until execve, so it runs no Go code and
// uses no stack: assembly performs a list of system calls that was prepared for it.
package spawn
