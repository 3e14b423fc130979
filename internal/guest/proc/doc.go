// Package proc starts and reaps the guest's processes, and finds and ends the
// descendants of each exec.
//
// Every process of an exec carries a mark ([Lineage]) that it cannot change into
// another exec's. The [Reaper] owns wait4. The [Walker] visits all processes in
// /proc that may carry given marks; a [Tree] signals and ends them.
package proc
