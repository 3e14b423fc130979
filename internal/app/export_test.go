package app

// What only tests reach: the second step of removals, without the first.
var IfGone = (*App).ifGone

// HoldCopy keeps others from removing a copy that has no sandbox yet.
var HoldCopy = (*App).holdCopy

// SetFree has a value in place of what the disk says.
func (a *App) SetFree(free func() (int64, error)) { a.testFree = free }

// DiskReserve is what must stay free.
const DiskReserve = diskReserve

// TestPackages has images made of the packages of another root.
func (a *App) TestPackages(root string) { a.packages = root }
