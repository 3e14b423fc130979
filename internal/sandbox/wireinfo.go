package sandbox

// WireInfo is implemented by an instance that knows where its guest listens on this host and which
// process that is, so that a small program can dial it without the runtime.
type WireInfo interface {
	// Wire is the guest's socket and its process id; 0 if it does not run.
	Wire() (socket string, pid int)
}

// UseLock returns the name of the file lock that every user of a sandbox shares.
func UseLock(name string) string { return useLock(name) }
