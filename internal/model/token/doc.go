// Package token mints and verifies the session tokens of the shared proxy: a
// gateway that we did not make sends one with every call, and it alone says
// whose call that is. A token yields exactly one session's identity, whatever
// else the caller sends, and ends by itself.
//
// Only a hash of a token is stored; its text is shown once, when it is made.
package token
