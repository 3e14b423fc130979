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
	return strconv.FormatUint(rand.Uint64(), 36) + "-" + strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // unique, not secret
}
