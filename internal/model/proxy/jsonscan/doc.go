// Package jsonscan reads JSON in one pass, in place, for a check that must not
// read it differently from the next parser.
//
// It is stricter than the standard library and fails closed: one value and
// nothing after it, valid UTF-8 and no byte order mark, no lone surrogates, no
// key twice in any object, however it is escaped, and, in the outermost two
// levels, no two keys that differ only in case and no keys beyond ASCII.
// encoding/json matches keys whatever their case, Python does not: a
// check of {"model":"dear","MODEL":"cheap"} with one is worth nothing to a program
// that reads it with the other.
//
// Only what is read is decoded, and nothing is ever encoded: documents are changed
// by splicing bytes at the positions that the scanner reports.
package jsonscan
