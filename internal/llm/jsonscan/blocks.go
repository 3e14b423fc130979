package jsonscan

import "math/bits"

// blockSize is how many bytes are looked at in one go.
const blockSize = 64

// maxBlocks is how many blocks are passed in one go: some microseconds' worth,
// for nothing can interrupt it.
const maxBlocks = 4096

// stop is why no more blocks were passed. A bit stands for a byte of the block,
// the lowest for the first.
type stop struct {
	at    uint64 // what needs attention; 0 if there are no more blocks
	wrong uint64 // of that, what no backslash may stand before
	carry uint64 // 1: the block before ends with the first half of an escape
}

// skipBlocks reads past the bytes of a string from pos on that need no
// attention, block by block: everything but its end, escapes beyond the simple
// ones, control characters and what is beyond ASCII. It stops at the first of
// these, or less than a block before the end of in, and never within an escape.
func skipBlocks(in []byte, pos int) int {
	var s stop
	for canPass && len(in)-pos >= blockSize {
		pos += pass(&in[pos], min((len(in)-pos)/blockSize, maxBlocks), &s)
		if s.at != 0 {
			first := bits.TrailingZeros64(s.at)
			return pos + first - int(s.wrong>>first&1) // the backslash is part of what is wrong
		}
		pos -= int(s.carry)
	}
	return pos
}
