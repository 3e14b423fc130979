package kube

import (
	"context"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// leavesNetwork reports whether the guest is to leave the network of its pod. Guests
// cannot yet.
func leavesNetwork(*sandbox.Spec, *kubekeys.Settings) bool { return false }

// networkGaps are networks that pods do not have, and the want of one that nothing
// enforces: a pod always has an interface, and plug-ins that do not implement
// NetworkPolicy ignore it silently.
func networkGaps(spec *sandbox.Spec, s *kubekeys.Settings) []sandbox.Gap {
	switch {
	case spec.Network == "bridge", leavesNetwork(spec, s):
		return nil
	case spec.Network != "none":
		return []sandbox.Gap{{Field: "docker.network", Reason: "a pod has the cluster's network or none", Remedy: "set docker.network to none, and name what is reached in sandbox.egress"}}
	}
	return []sandbox.Gap{{Field: "docker.network", Reason: "nothing keeps a pod from the cluster's network here: the guest cannot leave it yet",
		Remedy: "set docker.network to bridge if the sandbox may have the cluster's network, or sandbox.backend to linux or docker"}}
}

// checkNetwork makes sure that a sandbox without a network has none.
func (i *Instance) checkNetwork(context.Context) error { return nil }
