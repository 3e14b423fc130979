package sandboxcmd

import (
	"cmp"
	"fmt"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// explainedCluster is what the settings of a cluster add to a sandbox that is a pod.
type explainedCluster struct {
	kubekeys.Settings
	// NetworkRing is what keeps the sandbox from the network of the cluster.
	NetworkRing string `json:"networkRing"`

	origins kubekeys.Origins
}

// explainCluster returns nil for sandboxes that are no pods.
func explainCluster(s *provide.Settings, p *plan.Plan, backend provide.Backend) *explainedCluster {
	if backend.Configured != provide.BackendKubernetes {
		return nil
	}
	settings, origins := s.Config.Kubernetes().Settings()
	return &explainedCluster{Settings: settings, NetworkRing: settings.NetworkRing(p.Spec.Network), origins: origins}
}

// cluster prints the isolation that pods have beside that of every backend.
func (pg *page) cluster() {
	c := pg.x.Sandbox.Cluster
	if c == nil {
		return
	}
	pg.clusterFact("network ring", networkRingText(c.NetworkRing), "seccompProfile")
	if c.NetworkRing == kubekeys.NetworkPolicy && !c.TrustNetworkPolicy {
		pg.note("nothing is made until kubernetes.seccompProfile or kubernetes.trustNetworkPolicy is set")
	}
	pg.clusterFact("namespace", c.Namespace+", service account "+c.ServiceAccount+", without a token", "namespace")
	pg.clusterFact("runtime class", cmp.Or(c.RuntimeClass, "the cluster's own"), "runtimeClass")
	pg.clusterFact("user namespace", map[bool]string{true: "one for each pod", false: "the node's"}[c.UserNamespaces], "userNamespaces")
	pids := "what the kubelets allow, which is not said here"
	if c.PodPidsLimit > 0 {
		pids = fmt.Sprintf("at most %d, by the kubelets", c.PodPidsLimit)
	}
	pg.clusterFact("pod's processes", pids, "podPidsLimit")
	if v := c.WorkspaceVolume; v != nil {
		class := cmp.Or(v.StorageClass, "the cluster's default")
		pg.clusterFact("workspace", "a PersistentVolumeClaim of "+v.Size+", StorageClass "+class+"; it outlives pods, and no pod waits in a pool: each starts cold", "workspaceVolume")
		return
	}
	pg.clusterFact("workspace", "at most "+c.WorkspaceSize+" on the node; fetched when the sandbox is stopped or removed, or the cluster ends it", "workspaceSize")
}

// clusterFact is fact for a key of kubernetes.
func (pg *page) clusterFact(name, value, key string) {
	from := pg.x.Sandbox.Cluster.origins[key]
	if from == "default" {
		from = "default of kubernetes." + key
	}
	pg.fact(name, value, "")
	pg.note("← " + from)
}

// networkRingText says what each ring is.
func networkRingText(ring string) string {
	switch ring {
	case kubekeys.NetworkOwn:
		return ring + ": the guest leaves the pod's network before anything runs"
	case kubekeys.NetworkPolicy:
		return ring + ": a NetworkPolicy, tried from inside before anything runs"
	}
	return ring + ": the network of the cluster, no rule of ours bounds it"
}
