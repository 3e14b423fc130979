// Package patch understands the patch format that models write for the tool
// apply_patch, and applies a patch as a whole or not at all.
//
//	patch    = "*** Begin Patch" { file } "*** End Patch"
//	file     = "*** Add File: " path { "+" text }
//	         | "*** Delete File: " path
//	         | "*** Update File: " path [ "*** Move to: " path ] { hunk }
//	hunk     = { "@@" [ " " header ] } { line } [ "*** End of File" ]
//	line     = " " text | "-" text | "+" text
//
// Hunks have no line numbers. They are found by their lines: those that stay
// (" ") and those that go ("-") must follow each other in the file, after the
// hunk before. Headers tell which of several places is meant: each is a line of
// the file, nested ones follow each other, and the hunk is the nearest place
// after the last. Without headers there may be only one place. A hunk that only
// adds goes right after its header, or else to the end of the file.
//
// What known readers of the format forgive is forgiven here: a here-document or
// a code fence around the patch, "\r\n", blanks around markers, a blank line
// where " " is meant, no "@@" before the first hunk. Lines that differ from the
// file only in white space at their end, or in the kind of quotes and dashes,
// are found too, and the plan says so. The rest is strict.
//
// The way of a patch: Parse → Patch → Plan (every new content is computed and
// every conflict found, nothing is written) → Execute (with the way back at
// hand). Where files are, and who may touch them, is decided by the FS.
package patch
