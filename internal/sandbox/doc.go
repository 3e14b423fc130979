// Package sandbox is the domain: what a sandbox is (Spec), what machinery must
// offer to make one (Runtime, Instance), and the Manager that keeps at most one
// live sandbox per name: ensure, reuse, recreate, prune, adopt.
//
// It knows no engine, no config file and no git. A runtime only has to produce
// a machine with a wire into it; commands and files are package machine's work.
//
// Manager.Ensure returns a running sandbox that answers, or one typed error:
//
//	live wire, same hash ──ping──▶ done                        no engine call
//	running, same hash ──file lock, wire──▶ done               one engine call
//	otherwise: take the name's change lock, look again, decide:
//	    nothing there ─────────▶ row, create, start, wire, set-up, row ready
//	    stopped, same ─────────▶ start
//	    changed, cold ─────────▶ remove, create
//	    changed, hot or in use ▶ keep, and name the command that applies the change
//	    changed mounts, hot ───▶ refuse
//	    its limits were lost ──▶ stop, start; refuse while in use
//
// The row is written before the creation, so that the next start finds whatever a
// crash left, by its name.
package sandbox
