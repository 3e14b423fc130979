// Package memory finds what an agent has written down: MEMORY.md and the files
// below memory/ in its workspace, cut into pieces and indexed for search: by
// words, and by meaning where there is a model for it.
//
// The index can always be made again from the files, so it may be lost. The
// files are the agent's: they are opened below a directory held by descriptor,
// no link is followed, and everything about them is bounded.
package memory
