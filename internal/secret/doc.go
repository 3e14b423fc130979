// Package secret is where keys come from: a variable of the environment, a
// file, a program's output, a file encrypted with age. A Value prints as
// [redacted] under every verb and in every format; its text is reached only
// through Reveal. No error of this package quotes a secret, nor what a program
// printed.
//
// A Pool holds several keys for one upstream: one that is refused or throttled
// is used after the others for a while; sources are read again, so a
// key that was changed is used without a restart.
//
// The package does not depend on what a key is for.
package secret
