package wire

import (
	"math/rand/v2"
	"strconv"
)

// NewID returns a name that nobody else has, for a client, a process or a life. It need
// not be secret: a guest hears nobody but hosts. So it comes from the random
// numbers that the kernel gives every program at its start; to ask for more takes
// as long as a good part of a short command.
func NewID() string {
	return string(AppendID(nil, rand.Uint64(), rand.Uint64())) //nolint:gosec // unique, not secret
}

// AppendID appends the name that is made of two random numbers.
func AppendID(b []byte, one, two uint64) []byte {
	return strconv.AppendUint(append(strconv.AppendUint(b, one, 36), '-'), two, 36)
}
