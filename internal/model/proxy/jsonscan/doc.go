// Package jsonscan reads JSON in one pass, in place, for a check that must not
// read it differently from whoever reads it next.
//
// It is stricter than the standard library and fails closed: one value and
// nothing after it, valid UTF-8 and no byte order mark, no lone surrogates, no
// key twice in any object, however it is escaped, and, in the outermost two
// levels, no two keys that differ only in case and no keys beyond ASCII.
// encoding/json matches keys whatever their case, Python does not: whoever
// checks {"model":"dear","MODEL":"cheap"} with one and acts with the other has
// checked nothing.
//
// Nothing is decoded that is not asked for, and nothing is ever encoded: who
// wants to change a document splices bytes at the places that the scanner gives.
package jsonscan
