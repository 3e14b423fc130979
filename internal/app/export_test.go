package app

import "github.com/atoll-run/atoll/internal/plan"

// What only tests reach: the second step of removals, without the first.
var IfGone = (*App).ifGone

// HoldCopy keeps others from removing a copy that has no sandbox yet.
var HoldCopy = (*App).holdCopy

// SetFree has a value in place of what the disk says.
func (a *App) SetFree(free func() (int64, error)) { a.testFree = free }

// DiskReserve is what must stay free.
const DiskReserve = diskReserve

// Foreseen is what was planned while the state was opened; nil if nothing is left
// of that.
func (a *App) Foreseen() *plan.Plan {
	if f := a.foreseen.Load(); f != nil {
		return f.plan
	}
	return nil
}

// OnDrop is told when nobody needs what was foreseen any more.
func (a *App) OnDrop(told func()) {
	f := a.foreseen.Load()
	drop := f.drop
	f.drop = func() { drop(); told() }
}
