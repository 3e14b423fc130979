package wire

import (
	"math/rand/v2"
	"strconv"
)

// NewID returns a unique name for a client, a process or a boot. It need not be
// secret, as a guest admits only hosts. So it comes from the random numbers that
// the kernel gives every program at its start, without another system call.
func NewID() string {
	return strconv.FormatUint(rand.Uint64(), 36) + "-" + strconv.FormatUint(rand.Uint64(), 36) //nolint:gosec // unique, not secret
}
