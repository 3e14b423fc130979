// Package secret is where keys come from: a variable of the environment, a
// file, a program's output, a file encrypted with age. A Value prints as
// [redacted] under every verb and in every format; its text is reached only
// through Reveal. No error of this package quotes a secret, nor what a program
// printed.
//
// A Pool holds several keys for one upstream: one that is refused or throttled
// rests for a while and another takes its place; sources are read again, so a
// key that was changed is used without a restart.
//
// What a key is for is not known here.
package secret
