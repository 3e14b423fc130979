// Package tool holds the tools that a model can call: for each its name, its
// schema, the check of its arguments, what it does on a machine, and a result in
// words that a model can work with.
//
// The way of a call: name → policy → arguments → half of a pair → machine →
// result. A Set is the tools of one session and goes this way; every tool is a
// file of its own.
//
// Mistakes that a model can mend (a file that is not there, a command that
// failed) are results. Errors are for what it cannot: a call that policy
// refuses, arguments that make no sense, a sandbox that does not answer.
//
// Making sandboxes, choosing sessions and talking to models does not belong
// here; nor do the formats of patches, edits and pages, which are packages below.
package tool
