package kube

import (
	"context"
	"errors"
	"fmt"
	"math"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// A gateway whose node is cut off may live on while the next one is started. The number of
// changes of the holder of a Lease is the epoch of its owner: a gateway raises it before its
// first connection to the sandbox, and the guest refuses lower ones. It is never below the
// number of starts of gateways, which the state directory has: a cluster whose etcd was
// restored from a snapshot has Leases with lower epochs than the guests have seen, and the
// next gateway would get that of a live one.
// Other processes of the installation come with the numbers that they find.

// maxTakeOvers is how often a Lease that others change meanwhile is read again.
const maxTakeOvers = 5

func epochOf(l *coordinationv1.Lease) uint64 {
	if l.Spec.LeaseTransitions == nil || *l.Spec.LeaseTransitions < 0 {
		return 0
	}
	return uint64(*l.Spec.LeaseTransitions)
}

// takeOver returns the epoch for the wires of this process to the sandbox, which becomes
// this gateway's if this process is one.
func (i *Instance) takeOver(ctx context.Context) (uint64, error) {
	r := i.runtime
	for tries := 1; ; tries++ {
		lease := i.current()
		if epoch, ok := r.heldEpoch(lease); ok {
			return epoch, nil
		}
		err := i.advance(ctx, r.nextEpoch)
		switch {
		case err == nil:
			r.keepEpoch(i.current())
		case !errors.Is(err, sandbox.ErrBusy) || tries == maxTakeOvers:
			return 0, err
		default:
			err = i.read(ctx)
		}
		if err != nil {
			return 0, err
		}
	}
}

// heldEpoch returns the epoch that this process has at the Lease; false if it has to write
// it first: it has not taken the Lease over, or what it wrote is lost.
func (r *Runtime) heldEpoch(l *coordinationv1.Lease) (uint64, bool) {
	if !r.owner {
		return max(epochOf(l), r.leastEpoch), true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	epoch, ok := r.epochs[l.UID]
	return epoch, ok && epoch <= epochOf(l)
}

// nextEpoch writes this process into a Lease that is about to be changed, if it is a gateway
// with its epoch: the one that it has, or else one that no gateway had.
func (r *Runtime) nextEpoch(l *coordinationv1.Lease) {
	l.Spec.HolderIdentity = new(holder())
	epoch, written := r.heldEpoch(l)
	if written {
		return
	}
	if epoch == 0 {
		epoch = max(epochOf(l)+1, r.leastEpoch)
	}
	l.Spec.LeaseTransitions = new(int32(min(epoch, math.MaxInt32)))
}

// keepEpoch remembers what this gateway has written.
func (r *Runtime) keepEpoch(l *coordinationv1.Lease) {
	if !r.owner {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.epochs[l.UID]; !ok {
		r.epochs[l.UID] = epochOf(l)
	}
}

// checkOwner refuses a Lease that a later gateway has taken over: this one does nothing with
// the sandbox any more.
func (r *Runtime) checkOwner(l *coordinationv1.Lease) error {
	r.mu.Lock()
	held, ok := r.epochs[l.UID]
	r.mu.Unlock()
	if !ok || epochOf(l) <= held {
		return nil
	}
	return errhint.With(fmt.Errorf("another gateway (%s) has taken it over: %w", *l.Spec.HolderIdentity, sandbox.ErrForeign), "stop this gateway: one serves an installation")
}

// forgetEpoch drops what is known of a Lease that is gone.
func (r *Runtime) forgetEpoch(l *coordinationv1.Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.epochs, l.UID)
}
