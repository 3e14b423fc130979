package linux

import (
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/runtime/blueprint"
)

// The share that one sandbox has of what the kernel counts by user, if the
// configuration asks for no other.
const (
	// maxFiles bounds the open files of a process, and the descriptors that all
	// processes of the user have in flight between sockets.
	maxFiles = 16384
	// maxSignals bounds the signals that wait, of which a user often has 30,000.
	maxSignals = 4096
	// maxQueues bounds the bytes of message queues, of which a user has 819,200.
	maxQueues = 409_600
)

// userShares returns the limits of what the kernel counts by user: never more
// than this process has.
func userShares() []blueprint.Limit {
	var limits []blueprint.Limit
	for _, share := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_NOFILE, maxFiles}, {unix.RLIMIT_SIGPENDING, maxSignals}, {unix.RLIMIT_MSGQUEUE, maxQueues}} {
		own := unix.Rlimit{Cur: share.most, Max: share.most}
		_ = unix.Getrlimit(share.resource, &own) // leaves own as it is if it fails
		limits = append(limits, blueprint.Limit{Resource: share.resource, Soft: min(own.Cur, share.most), Hard: min(own.Max, share.most)})
	}
	return limits
}
