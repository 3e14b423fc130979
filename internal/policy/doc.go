// Package policy makes the decisions of Atoll as pure functions: is a session
// sandboxed, who shares its sandbox, what is that sandbox called, which tools
// and variables may enter, what is mounted where, and what in a configuration
// must be refused.
//
// It performs no I/O and knows no time: the same input always gives the same
// answer. What only the disk can tell comes in through the Disk interface,
// which package hostpath implements.
package policy
