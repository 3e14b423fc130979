package jsonscan

import "golang.org/x/sys/cpu"

// canPass reports whether pass may be called.
var canPass = cpu.X86.HasAVX2

// pass reads past blocks of a string that hold neither its end nor anything
// that needs attention, and returns how many bytes that were. The first block
// does not begin within an escape.
//
//go:noescape
func pass(in *byte, blocks int, s *stop) (passed int)
