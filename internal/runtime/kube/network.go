package kube

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// What keeps a sandbox from the cluster's network, in an annotation of its Lease and among
// its labels.
const (
	noteNetwork = "atoll.dev/network"

	networkOwn     = kubekeys.NetworkOwn
	networkPolicy  = kubekeys.NetworkPolicy
	networkCluster = kubekeys.NetworkCluster
)

const (
	// probeTimeout is how long a connection may take that is not to succeed. The guest
	// counts it from when it connects, however busy the node is.
	probeTimeout = 2 * time.Second
	// probeLimit is how long the guest may take to say so.
	probeLimit = 20 * time.Second
	// policyTimeout is how long a plug-in may take until it enforces a policy on a new pod.
	policyTimeout = 15 * time.Second
	// closedProbes is how often in a row nothing must be reached.
	closedProbes = 2
)

// networkOf is what keeps a sandbox from the cluster's network.
func networkOf(spec *sandbox.Spec, s *kubekeys.Settings) string {
	return s.NetworkRing(spec.Network)
}

// networkGaps are networks that pods do not have, and the want of one that nothing
// enforces: a pod always has an interface, and plug-ins that do not implement
// NetworkPolicy ignore it silently.
func networkGaps(spec *sandbox.Spec, s *kubekeys.Settings) []sandbox.Gap {
	switch {
	case spec.Network != "none" && spec.Network != "bridge":
		return []sandbox.Gap{{Field: "docker.network", Reason: "a pod has the cluster's network or none", Remedy: "set docker.network to none, and name what is reached in sandbox.egress"}}
	case networkOf(spec, s) == networkPolicy && !s.TrustNetworkPolicy:
		return []sandbox.Gap{{Field: "docker.network", Reason: "nothing keeps a pod from the cluster's network here: the default profile of system calls does not let the guest give it another",
			Remedy: "install Atoll's profile on the nodes and name it in kubernetes.seccompProfile, or deny everything with a NetworkPolicy and set kubernetes.trustNetworkPolicy"}}
	}
	return nil
}

// checkNetwork tries from inside whether a policy keeps the sandbox from the network,
// before anything of the sandbox's own runs.
func (i *Instance) checkNetwork(ctx context.Context) error {
	if i.current().Annotations[noteNetwork] != networkPolicy {
		return nil
	}
	c, err := i.runtime.cluster()
	if err != nil {
		return err
	}
	m := machine.New(i.Dial, &machine.Options{Log: i.runtime.logger})
	defer m.Close()
	targets, reached := probeTargets(c, i.currentPod()), ""
	for closed, deadline := 0, time.Now().Add(policyTimeout); closed < closedProbes; closed++ {
		if reached, err = firstReached(ctx, m, targets); err != nil {
			return fmt.Errorf("network: %w", err)
		}
		if reached == "" {
			continue
		}
		if closed = -1; time.Now().After(deadline) {
			return errhint.With(fmt.Errorf("docker.network: none: the pod reaches %s, no NetworkPolicy keeps it from that: %w", reached, sandbox.ErrUnsupported),
				"deny all traffic of the namespace with a NetworkPolicy, and use a network plug-in that enforces it; or set kubernetes.seccompProfile")
		}
		if err := pause(ctx, probeTimeout/4); err != nil {
			return err
		}
	}
	return nil
}

// probeTargets are addresses that a pod with a network reaches: the API server, the
// kubelet of its node, and one outside.
func probeTargets(c *cluster, pod *corev1.Pod) []string {
	targets := []string{"1.1.1.1:443"}
	if pod != nil && pod.Status.HostIP != "" {
		targets = append(targets, net.JoinHostPort(pod.Status.HostIP, "10250"))
	}
	if server, err := url.Parse(c.config.Host); err == nil && server.Port() != "" {
		targets = append(targets, server.Host) // a name is resolved by nothing inside, and so not reached
	}
	return targets
}

// firstReached returns the first address that a process in the sandbox connects to; "" if
// it reaches none. A process that does not say that it reached none has not been tried.
func firstReached(ctx context.Context, m *machine.Machine, targets []string) (string, error) {
	for _, target := range targets {
		var out bytes.Buffer
		res, err := m.Exec(ctx, &machine.Command{Argv: []string{guestTarget, "connect", target, probeTimeout.String()}, Stdout: &out, Timeout: probeLimit})
		switch {
		case err != nil:
			return "", err
		case out.Len() > 0: // the guest says that it is connected
			return target, nil
		case res.ExitCode != 1 || res.TimedOut:
			return "", fmt.Errorf("the attempt to reach %s ended with %d", target, res.ExitCode)
		}
	}
	return "", nil
}
