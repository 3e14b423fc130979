package jsonscan

import "golang.org/x/sys/cpu"

// canLook reports whether look may be called.
var canLook = cpu.X86.HasAVX2

// look marks the bytes of a block.
//
//go:noescape
func look(block *[blockSize]byte, m *marks)
