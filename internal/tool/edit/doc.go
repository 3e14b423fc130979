// Package edit replaces a piece of a text by another, exactly: the piece must
// be there, and only once unless every occurrence is meant. When it is not, the
// error says where something like it is, or where all of them are, so that the
// next attempt can be right.
//
// Line ends are the exception to "exactly". Models write "\n" whatever the file
// has; so "\n" also matches "\r\n", and what is put in gets the line ends of
// its surroundings.
//
// The package works on strings. Files, their versions and their permissions are
// its caller's matter.
package edit
