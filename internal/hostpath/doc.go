// Package hostpath establishes facts about host paths by descriptor: what a
// path really is once its links are followed, who owns it, and which file an
// open descriptor holds. It also opens and writes files below a directory that
// someone hostile may be changing at the same time.
//
// It decides nothing: whether a path may be mounted is package policy's
// business, and which files belong in a workspace is package workspace's.
package hostpath
