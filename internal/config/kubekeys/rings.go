package kubekeys

// What keeps a sandbox from the network of the cluster.
const (
	NetworkOwn     = "own"             // its processes have a network namespace of their own
	NetworkPolicy  = "policy (probed)" // a NetworkPolicy, and nothing was reached when it was tried
	NetworkCluster = "cluster"         // nothing: it was asked for the pod's network
)

// NetworkRing returns what keeps a sandbox with that docker.network from the network of
// the cluster.
func (s *Settings) NetworkRing(network string) string {
	switch {
	case network != "none":
		return NetworkCluster
	case s.SeccompProfile != "":
		return NetworkOwn
	}
	return NetworkPolicy
}
