package sandbox

import "context"

// KeptPool is a pool that a PoolKeeper is to have.
type KeptPool struct {
	Spec *Spec // what its sandboxes are made with, for the pool of its agent
	Size int
}

// PoolCount is how many sandboxes of a pool wait, and how many are being made.
type PoolCount struct {
	Ready, Making int
	Problem       string // why none is ready; "" if some are, or if it is too early to tell
}

// A PoolKeeper is a runtime beside which another program keeps sandboxes ready. Create
// takes one of them where a pool has what the spec asks for.
type PoolKeeper interface {
	Runtime
	// KeepPools has that program keep these pools and no others of this installation, and
	// returns how full each is.
	KeepPools(ctx context.Context, pools []KeptPool) ([]PoolCount, error)
}

// A PoolMember is an instance that may come out of a pool of a PoolKeeper.
type PoolMember interface {
	// Member returns what it was called there; "" if it was made anew.
	Member() string
}

// memberOf returns what an instance was called in the pool that it came out of.
func memberOf(inst Instance) string {
	if m, ok := inst.(PoolMember); ok {
		return m.Member()
	}
	return ""
}
