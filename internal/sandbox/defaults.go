package sandbox

// Defaults are limits that are not configured. A runtime enforces those that it
// can, and leaves the others out; they are no part of the configuration's hash.
type Defaults struct {
	Pids   int64
	Memory int64 // bytes
}

// None reports whether there are none.
func (d Defaults) None() bool { return d == Defaults{} }

// WithDefaults returns the limits with the defaults d in the place of those that
// were not asked for.
func (l Limits) WithDefaults(d Defaults) Limits {
	if l.Pids == 0 {
		l.Pids = d.Pids
	}
	if l.Memory == 0 {
		l.Memory = d.Memory
	}
	return l
}
