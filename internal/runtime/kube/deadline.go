package kube

import (
	"github.com/atoll-run/atoll/internal/sandbox"
)

// deadlineAfter is how long after its age limit the cluster ends a pod, in seconds: the
// gateway removes it long before, unless every gateway is gone.
const deadlineAfter = 60 * 60

// deadlineOf is activeDeadlineSeconds of a pod; nil if its sandbox may get as old as it does.
// The age of one that waits in a pool begins when it is claimed: it has the time twice.
func deadlineOf(spec *sandbox.Spec) *int64 {
	if spec.MaxAgeSec <= 0 {
		return nil
	}
	age := spec.MaxAgeSec
	if spec.Kind == sandbox.KindPool {
		age *= 2
	}
	return new(age + deadlineAfter)
}
