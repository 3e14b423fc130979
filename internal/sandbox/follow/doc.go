// Package follow brings edits that a person makes in a base directory to the agent
// that works on its overlay. The kernel shows writes to a file of the base inside,
// but not a file that an editor or git has replaced; such files are written through
// the guest, if the agent has not changed them itself.
//
// What is below a .git directory is not followed: git changes several of its files
// together, and half of a change would damage the repository that the agent sees.
package follow
