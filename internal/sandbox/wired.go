package sandbox

// A Wired instance can say where its guest listens on this host and which
// process that is, so that a small program can dial it without the runtime.
type Wired interface {
	// Wire is the guest's socket and its process id; 0 if it does not run.
	Wire() (socket string, pid int)
}

// UseLock is the name of the lease that whoever works in a sandbox shares.
func UseLock(name string) string { return useLock(name) }
