// Package headstart carries a short `docker exec` out before the Go runtime has
// started. To start that takes a program longer than to have a guest run a command:
// memory to map, threads to make, a hundred pages to touch.
//
// The program's first instruction is Entry (the linker's flag -E says so), not
// the runtime's. It asks the guest for the command and waits for a moment. If the
// command ends, and there is room for what it has said, so does the program. In
// every other case the runtime starts, and the program as it always is: from the
// beginning if nothing was asked for, or else with what Take returns, the wire on
// which the command was asked for. A program that is linked without the flag does
// the same, a little later.
//
// Before the runtime there is no heap, no goroutine, no map, no panic, and no
// package variable has a value that had to be computed. So everything here has
// its room in a call, and what does not fit, or is in any way unusual, is left to
// the whole program. TestWithoutAHeap sees to it that what is called here can be.
package headstart
