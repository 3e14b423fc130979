package kubekeys

import (
	"cmp"
	"maps"
	"slices"
)

// Settings say how sandboxes are made on a cluster.
type Settings struct {
	Kubeconfig          string            `json:"kubeconfig,omitempty"`
	Context             string            `json:"context,omitempty"`
	Namespace           string            `json:"namespace"`
	GuestImage          string            `json:"guestImage"`
	ImagePullPolicy     string            `json:"imagePullPolicy"`
	ImagePullSecrets    []string          `json:"imagePullSecrets,omitempty"`
	RuntimeClass        string            `json:"runtimeClass,omitempty"`
	ServiceAccount      string            `json:"serviceAccount"`
	PriorityClass       string            `json:"priorityClass,omitempty"`
	SeccompProfile      string            `json:"seccompProfile,omitempty"`
	UserNamespaces      bool              `json:"userNamespaces"`
	NodeSelector        map[string]string `json:"nodeSelector,omitempty"`
	Tolerations         []Toleration      `json:"tolerations,omitempty"`
	TrustNetworkPolicy  bool              `json:"trustNetworkPolicy"`
	PodPidsLimit        int               `json:"podPidsLimit,omitempty"`
	StartsAtOnce        int               `json:"startsAtOnce"`
	StartTimeoutSec     int               `json:"startTimeoutSec"`
	TerminationGraceSec int               `json:"terminationGraceSec"`
	WorkspaceSize       string            `json:"workspaceSize"`
	Provider            string            `json:"provider"`
	WorkspaceVolume     *Volume           `json:"workspaceVolume,omitempty"` // nil: workspaces go with their pods
}

// Volume is what the PersistentVolumeClaims of workspaces ask for.
type Volume struct {
	Size         string `json:"size"`
	StorageClass string `json:"storageClass,omitempty"`
}

// Toleration is a taint of nodes that sandboxes may run on.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// Of a sandbox whose settings do not say otherwise.
const (
	DefaultMemory = 1 << 30     // bytes; this machine's memory says nothing about nodes
	DefaultUser   = "1000:1000" // files of this machine's user are copied, not mounted
)

// What keeps the pods of pools ready.
const (
	ProviderPods         = "pods"          // Atoll makes them
	ProviderAgentSandbox = "agent-sandbox" // the controller of kubernetes-sigs/agent-sandbox does
)

// Default returns the settings that nothing is written of.
func Default() Settings {
	return Settings{
		Namespace: "atoll-sandboxes", GuestImage: "ghcr.io/atoll-run/atoll-guest:latest", ImagePullPolicy: "IfNotPresent",
		ServiceAccount: "atoll-sandbox", StartsAtOnce: 8, StartTimeoutSec: 20, TerminationGraceSec: 60, WorkspaceSize: "10Gi", Provider: ProviderPods,
	}
}

// Origins says where each value comes from: "default", or the path of a key of the file.
type Origins map[string]string

// Settings returns what the file says over the defaults.
func (f *ClusterFile) Settings() (Settings, Origins) {
	s, from := Default(), Origins{}
	for key, text := range map[string]struct{ written, to *string }{
		"kubeconfig": {f.Kubeconfig, &s.Kubeconfig}, "context": {f.Context, &s.Context}, "namespace": {f.Namespace, &s.Namespace},
		"guestImage": {f.GuestImage, &s.GuestImage}, "imagePullPolicy": {f.ImagePullPolicy, &s.ImagePullPolicy},
		"runtimeClass": {f.RuntimeClass, &s.RuntimeClass}, "serviceAccount": {f.ServiceAccount, &s.ServiceAccount},
		"priorityClass": {f.PriorityClass, &s.PriorityClass}, "seccompProfile": {f.SeccompProfile, &s.SeccompProfile},
		"workspaceSize": {f.WorkspaceSize, &s.WorkspaceSize}, "provider": {f.Provider, &s.Provider},
	} {
		pick(from, key, text.written, text.to)
	}
	pick(from, "userNamespaces", f.UserNamespaces, &s.UserNamespaces)
	pick(from, "trustNetworkPolicy", f.TrustNetworkPolicy, &s.TrustNetworkPolicy)
	pick(from, "podPidsLimit", f.PodPidsLimit, &s.PodPidsLimit)
	pick(from, "startsAtOnce", f.StartsAtOnce, &s.StartsAtOnce)
	pick(from, "startTimeoutSec", f.StartTimeoutSec, &s.StartTimeoutSec)
	pick(from, "terminationGraceSec", f.TerminationGraceSec, &s.TerminationGraceSec)
	from["imagePullSecrets"], from["nodeSelector"], from["tolerations"] = origin("imagePullSecrets", f.ImagePullSecrets != nil),
		origin("nodeSelector", f.NodeSelector != nil), origin("tolerations", f.Tolerations != nil)
	s.ImagePullSecrets, s.NodeSelector = slices.Clone(f.ImagePullSecrets), maps.Clone(f.NodeSelector)
	from["workspaceVolume"] = origin("workspaceVolume", f.WorkspaceVolume != nil)
	if v := f.WorkspaceVolume; v != nil {
		s.WorkspaceVolume = &Volume{Size: cmp.Or(text(v.Size), s.WorkspaceSize), StorageClass: text(v.StorageClass)}
	}
	for _, t := range f.Tolerations {
		s.Tolerations = append(s.Tolerations, Toleration{Key: text(t.Key), Operator: text(t.Operator), Value: text(t.Value), Effect: text(t.Effect)})
	}
	return s, from
}

// pick sets to, which has the default, to what is written.
func pick[T any](from Origins, key string, written, to *T) {
	if written != nil {
		*to = *written
	}
	from[key] = origin(key, written != nil)
}

func origin(key string, written bool) string {
	if written {
		return "kubernetes." + key
	}
	return "default"
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
