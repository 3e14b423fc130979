package kubekeys

// ClusterFile is kubernetes as a file has it.
type ClusterFile struct {
	Kubeconfig          *string           `json:"kubeconfig" check:"hostPath" doc:"File with the clusters and credentials; without it KUBECONFIG, ~/.kube/config, or the service account of the pod that this program runs in."`
	Context             *string           `json:"context" check:"line" doc:"Context of the kubeconfig; its current one if not given."`
	Namespace           *string           `json:"namespace" check:"word" doc:"Namespace of the sandboxes, where nothing else should live."`
	GuestImage          *string           `json:"guestImage" check:"line" doc:"Image with the guest program at /guest, which every pod copies it from; pin it by digest."`
	ImagePullPolicy     *string           `json:"imagePullPolicy" enum:"IfNotPresent|Always|Never" doc:"When nodes pull images."`
	ImagePullSecrets    []string          `json:"imagePullSecrets" check:"word" doc:"Secrets of the namespace with credentials of registries."`
	RuntimeClass        *string           `json:"runtimeClass" check:"word" doc:"RuntimeClass of the pods; the cluster's default runtime if not given."`
	ServiceAccount      *string           `json:"serviceAccount" check:"word" doc:"Service account of the pods. They get no token of it."`
	PriorityClass       *string           `json:"priorityClass" check:"word" doc:"PriorityClass of the pods."`
	SeccompProfile      *string           `json:"seccompProfile" check:"line" doc:"Profile on the nodes, below the kubelet's seccomp directory, that lets the guest leave the pod's network; without it RuntimeDefault."`
	UserNamespaces      *bool             `json:"userNamespaces" doc:"Give each pod a user namespace of its own (hostUsers: false)."`
	NodeSelector        map[string]string `json:"nodeSelector" keys:"line" check:"line" doc:"Labels that the nodes of sandboxes have."`
	Tolerations         []TolerationFile  `json:"tolerations" doc:"Taints of nodes that sandboxes may run on."`
	TrustNetworkPolicy  *bool             `json:"trustNetworkPolicy" doc:"Accept a NetworkPolicy of the namespace as what keeps sandboxes from the network, if a probe from inside finds it closed; results name it policy (probed)."`
	PodPidsLimit        *int              `json:"podPidsLimit" min:"1" doc:"What the kubelets of the nodes limit the processes of a pod to (podPidsLimit). A limit that the configuration asks for must not be lower."`
	StartsAtOnce        *int              `json:"startsAtOnce" min:"1" max:"100" doc:"How many pods are made, or filled with their workspaces, at once; others wait. More of them slow the API server and the nodes down."`
	StartTimeoutSec     *int              `json:"startTimeoutSec" min:"5" max:"600" doc:"How many seconds a pod may take to run."`
	TerminationGraceSec *int              `json:"terminationGraceSec" min:"3" max:"3600" doc:"How many seconds a pod has that the cluster ends, as at an eviction, until its workspace has to be home."`
	Provider            *string           `json:"provider" enum:"pods|agent-sandbox" doc:"What keeps the pods of pools ready: Atoll itself, or the controller of agent-sandbox, whose CustomResourceDefinitions and controller the cluster must have."`
	WorkspaceSize       *string           `json:"workspaceSize" check:"quantity" doc:"What a workspace may hold, as a Kubernetes quantity such as 10Gi."`
	WorkspaceVolume     *VolumeFile       `json:"workspaceVolume" doc:"Keep each workspace on a PersistentVolumeClaim of its own, which outlives its pods."`
}

// VolumeFile is kubernetes.workspaceVolume as a file has it.
type VolumeFile struct {
	Size         *string `json:"size" check:"quantity" doc:"What the volume holds, as a Kubernetes quantity; kubernetes.workspaceSize if not given."`
	StorageClass *string `json:"storageClass" check:"line" doc:"StorageClass that makes the volume; the cluster's default if not given."`
}

// TolerationFile is one toleration as a file has it.
type TolerationFile struct {
	Key      *string `json:"key" check:"line" doc:"Key of the taint; every taint if not given."`
	Operator *string `json:"operator" enum:"Exists|Equal" doc:"Whether the value of the taint counts."`
	Value    *string `json:"value" check:"line" doc:"Value of the taint."`
	Effect   *string `json:"effect" enum:"NoSchedule|PreferNoSchedule|NoExecute" doc:"Effect of the taint; all if not given."`
}
