package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/tailbuf"
	"github.com/atoll-run/atoll/internal/wire"
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

// errNotKnown is a probe that does not tell whether the network is closed.
var errNotKnown = errors.New("it is not known whether a NetworkPolicy keeps the pod from the network")

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
	targets := probeTargets(ctx, c, i.currentPod())
	for closed, deadline := 0, time.Now().Add(policyTimeout); closed < closedProbes; closed++ {
		reached, err := firstReached(ctx, m, networkPolicy, targets)
		if reached == "" && err == nil {
			continue
		}
		if err != nil && !errors.Is(err, errNotKnown) {
			return fmt.Errorf("network: %w", err)
		}
		if closed = -1; time.Now().After(deadline) {
			return notClosed(reached, err)
		}
		if err := pause(ctx, probeTimeout/4); err != nil {
			return err
		}
	}
	return nil
}

// notClosed is the error of a sandbox that is to have no network, and reaches something, or
// of which err says why that is not known.
func notClosed(reached string, err error) error {
	if err != nil {
		return errhint.With(fmt.Errorf("docker.network: none: %w: %w", err, sandbox.ErrUnavailable),
			"try again when the network of the node works, and look at its plug-in; or set kubernetes.seccompProfile, which needs no policy")
	}
	return errhint.With(fmt.Errorf("docker.network: none: the pod reaches %s, no NetworkPolicy keeps it from that: %w", reached, sandbox.ErrUnsupported),
		"deny all traffic of the namespace with a NetworkPolicy, and use a network plug-in that enforces it; or set kubernetes.seccompProfile")
}

// probeTargets are addresses that a pod with a network reaches: the API server, unless it is
// reached on loopback here, the kubelet of its node, and one outside.
func probeTargets(ctx context.Context, c *cluster, pod *corev1.Pod) []string {
	targets := []string{"1.1.1.1:443"}
	if pod != nil && pod.Status.HostIP != "" {
		targets = append(targets, net.JoinHostPort(pod.Status.HostIP, "10250"))
	}
	server, err := url.Parse(c.config.Host)
	if err != nil {
		return targets
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Inside nothing resolves a name, and an address on loopback is the pod's own: it refuses,
	// which tells nothing. It is left out only where the node is tried.
	addresses, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", server.Hostname())
	if len(addresses) > 0 && (len(targets) == 1 || !addresses[0].Unmap().IsLoopback()) {
		targets = append(targets, net.JoinHostPort(addresses[0].Unmap().String(), cmp.Or(server.Port(), "443")))
	}
	return targets
}

// firstReached returns the first address that a process in the sandbox connects to; "" if
// it reaches none. A process that does not say that it reached none has not been tried.
func firstReached(ctx context.Context, m *machine.Machine, ring string, targets []string) (string, error) {
	for _, target := range targets {
		out, said := &tailbuf.Writer{Most: maxComplaint}, &tailbuf.Writer{Most: maxComplaint}
		res, err := m.Exec(ctx, &machine.Command{Argv: []string{guestTarget, "connect", target, probeTimeout.String()}, Stdout: out, Stderr: said, Timeout: probeLimit})
		switch {
		case err != nil:
			return "", err
		case len(out.Bytes()) > 0: // the guest says that it is connected
			return target, nil
		}
		if err := isClosed(ring, target, res, string(said.Bytes())); err != nil {
			return "", err
		}
	}
	return "", nil
}

// isClosed returns nil if a connection that failed says that the network is closed. One of a
// pod without a route says nothing about its policy, and one that is refused has got
// somewhere.
func isClosed(ring, target string, res *machine.Result, said string) error {
	switch {
	case res.TimedOut:
		return fmt.Errorf("%w: the attempt to reach %s did not end within %v", errNotKnown, target, probeLimit)
	case res.ExitCode == wire.ConnectClosed, res.ExitCode == wire.ConnectNoRoute && ring == networkOwn:
		return nil
	case res.ExitCode == wire.ConnectNoRoute:
		return fmt.Errorf("%w: the network of the pod is not ready: it has no default route", errNotKnown)
	}
	return fmt.Errorf("%w: the attempt to reach %s ended with %d: %s", errNotKnown, target, res.ExitCode, short(said))
}
