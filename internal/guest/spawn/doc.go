// Package spawn starts a process the way the guest needs it, and nothing else:
// waiting and ending are the guest's.
//
// It exists for two things that the standard library does not do. It lowers
// resource limits in the new process before the program runs: those limits are
// the mark by which the guest knows a process's descendants (see package guest,
// lineage), and a mark set afterwards would come too late for a program that
// forks at once. And it never waits for a new process without a bound: until
// the program runs, everybody in the sandbox can stop it, and with the standard
// library's vfork the thread that starts it would stand still with it, and soon
// the whole guest.
//
// The new process shares memory with the guest until the program takes over, so
// it runs no Go code there, and uses no stack: it walks down a list of system
// calls that was prepared for it.
package spawn
