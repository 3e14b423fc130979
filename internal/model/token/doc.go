// Package token mints and verifies the session tokens of the shared proxy: a
// gateway that Atoll does not run sends one with every call, and the call is that
// of the token's session, whatever else the caller sends. A token expires.
//
// Only a hash of a token is stored; its text is shown once, when it is made.
package token
