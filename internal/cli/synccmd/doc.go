// Package synccmd has the verbs of `atoll sync`: what agents changed in their
// overlays, and the decisions about it. Names and contents of changed files are
// hostile; everything that is printed of them is escaped.
package synccmd
