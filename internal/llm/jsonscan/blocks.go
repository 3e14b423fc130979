package jsonscan

import "math/bits"

// blockSize is how many bytes are looked at in one go.
const blockSize = 64

// marks say of each byte of a block what it is. The lowest bit is the first's.
type marks struct {
	quotes, slashes uint64
	simple          uint64 // what a backslash may stand before, but for u
	odd             uint64 // control characters, and what is beyond ASCII
}

// skipBlocks reads past the bytes of a string from pos on that need no
// attention, block by block: everything but its end, escapes beyond the simple
// ones, control characters and what is beyond ASCII. It stops at the first of
// these, or less than a block before the end of in, and never within an escape.
// Where the next block is does not hang on what is in this one, so that
// processors can look at several at once.
func skipBlocks(in []byte, pos int) int {
	var m marks
	carry := uint64(0) // 1: the block before ends with the first half of an escape
	for ; len(in)-pos >= blockSize; pos += blockSize {
		look((*[blockSize]byte)(in[pos:]), &m)
		escapes, escaped := pairs(m.slashes, carry)
		wrong := escaped &^ m.simple
		if stop := (m.quotes|m.odd)&^escaped | wrong; stop != 0 {
			at := bits.TrailingZeros64(stop)
			return pos + at - int(wrong>>at&1) // the backslash is part of what is wrong
		}
		carry = escapes >> 63
	}
	return pos - int(carry)
}

// pairs tells the backslashes that begin an escape from those that an escape
// ends with, as in \\\\, and gives the places behind the former. The subtraction
// runs through each row of backslashes at once: it turns the bits over that
// alternate along the row, and one behind a row of odd length.
func pairs(slashes, carry uint64) (escapes, escaped uint64) {
	const alternate = 0xaaaaaaaaaaaaaaaa
	free := slashes &^ carry
	both := ((free<<1 | alternate) - free) ^ alternate
	return both & slashes, both ^ (slashes | carry)
}

// lookSlowly is look, written to be read.
func lookSlowly(block *[blockSize]byte) (m marks) {
	for i, c := range block {
		bit := uint64(1) << i
		if c == '"' {
			m.quotes |= bit
		}
		if c == '\\' {
			m.slashes |= bit
		}
		if simple[c] {
			m.simple |= bit
		}
		if c < 0x20 || c >= 0x80 {
			m.odd |= bit
		}
	}
	return m
}
