// Package gate is the only way from what a sandbox changed to the directory of the
// host that it works on.
//
//	collect ──▶ stage ──▶ judge ──▶ decide ──▶ apply ──▶ undo
//
// Collect reads the changes of an overlay once, copies every changed file to the
// stage under its hash and judges it; from there on nothing is read from the
// sandbox. A person approves entries at the hash that was shown. An approved batch
// is applied as a whole or not at all, also if the process or the host ends in the
// middle: the journal says what was begun, files are exchanged and never
// overwritten, and what was there before is kept for Undo.
//
// A file of the host that is not what the agent began with is a conflict, which is
// reported and never written over. What is not shown is counted.
package gate
