// Package spawn starts a process the way the guest needs it, and nothing else:
// waiting and ending are the guest's.
//
// It exists because of one thing that the standard library cannot do: lower
// resource limits in the new process before the program runs. Those limits are
// the mark by which the guest knows a process's descendants (see package
// guest, lineage), and a mark set afterwards would come too late for a program
// that forks at once. A launcher program in between would do it too, at three
// times the cost of the whole start.
//
// The child shares memory and stack with the parent until it has become the
// program (vfork), so the code between is held to the rules of the standard
// library's own: no allocation, no stack growth, no write to a pointer, only
// raw system calls. The hooks into the Go runtime are the ones that the runtime
// promises to keep.
package spawn
