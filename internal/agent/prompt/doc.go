// Package prompt writes the instructions that an agent begins with: what is
// true of the sandbox it works in, the files in which its owner describes how
// it should behave, and the skills it may look up.
//
// The facts promise nothing that is not there: no network, no token, no tool.
// Files that the agent itself can change are marked as such, so that yesterday's
// hostile web page does not speak today with its owner's voice.
package prompt
