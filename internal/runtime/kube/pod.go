package kube

import (
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The paths of the guest inside every sandbox, and its container.
const (
	guestHome     = "/.atoll"
	guestTarget   = guestHome + "/guest"
	wireTarget    = guestHome + "/wire"
	socketTarget  = wireTarget + "/guest.sock"
	containerName = "sandbox"
	installName   = "guest"
)

// The numbers of pods.
const (
	// installUser owns the guest's file: the sandbox's user may run it, not read it.
	installUser = 65533
	// defaultUser is the sandbox's user if none is configured.
	defaultUser = 1000
	// graceSeconds is how long the guest may take to end its processes when a sandbox is
	// removed. Where the cluster ends a pod it is terminationGraceSec of the settings.
	graceSeconds = 3
	// lostNodeSeconds is how long a pod stays bound to a node that is gone.
	lostNodeSeconds = 30
	// reattachTime is how long a command runs on while nothing leads to the guest: longer than
	// the machine tries to get back to it.
	reattachTime = "3m"
	// idleCPU is requested where no limit of the CPU is configured, in thousandths.
	idleCPU = 50
)

// template is the pod of a spec, without a name and an owner.
func template(spec *sandbox.Spec, s *kubekeys.Settings) (*corev1.Pod, error) {
	account, err := accountOf(spec.User)
	if err != nil {
		return nil, err
	}
	volumes, mounts, err := volumesOf(spec, s)
	if err != nil {
		return nil, err
	}
	hostUsers := !s.UserNamespaces
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: deadlineOf(spec), AutomountServiceAccountToken: new(bool), EnableServiceLinks: new(bool),
			ServiceAccountName: s.ServiceAccount, PriorityClassName: s.PriorityClass, NodeSelector: s.NodeSelector, Tolerations: tolerations(s),
			HostUsers: &hostUsers, TerminationGracePeriodSeconds: new(int64(s.TerminationGraceSec)), Hostname: hostname(spec.Host()),
			DNSPolicy: corev1.DNSNone, DNSConfig: dnsOf(spec), HostAliases: aliases(spec.ExtraHosts),
			SecurityContext: podSecurityContext(),
			InitContainers:  []corev1.Container{installer(s)},
			Containers:      []corev1.Container{container(spec, s, account, mounts)},
			Volumes:         volumes,

			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread()},
		},
	}
	if hasVolume(pod) {
		pod.Spec.SecurityContext.FSGroup, pod.Spec.SecurityContext.FSGroupChangePolicy = &account.gid, new(corev1.FSGroupChangeOnRootMismatch)
	}
	if s.RuntimeClass != "" {
		pod.Spec.RuntimeClassName = &s.RuntimeClass
	}
	for _, name := range s.ImagePullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	return pod, nil
}

// podSecurityContext is that of all containers of a pod. Shared memory that no process uses
// any more is freed: it counts against the limit, and killing processes would not free it.
func podSecurityContext() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		Sysctls: []corev1.Sysctl{{Name: "kernel.shm_rmid_forced", Value: "1"}},
	}
}

// spread lets sandboxes be on all nodes alike, so that a lost one takes few along.
func spread() corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: labelInstallation, Operator: metav1.LabelSelectorOpExists}}},
	}
}

// installer is the container that puts the guest into the pod. Volumes of images cannot:
// nothing on them may be run.
func installer(s *kubekeys.Settings) corev1.Container {
	return corev1.Container{
		Name: installName, Image: s.GuestImage, ImagePullPolicy: corev1.PullPolicy(s.ImagePullPolicy),
		Command:         []string{"/guest", "install", guestHome},
		SecurityContext: confined(account{installUser, installUser}, true),
		VolumeMounts:    []corev1.VolumeMount{{Name: installName, MountPath: guestHome}},
		Resources:       installerResources(),
		// What it says when it cannot is the reason in the pod's status.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// installerResources let the installer be quick without keeping room on a node that the
// sandbox itself has no use for.
func installerResources() corev1.ResourceRequirements {
	memory := resource.MustParse("64Mi")
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: memory},
	}
}

// container is the one in which the guest is process 1.
func container(spec *sandbox.Spec, s *kubekeys.Settings, user account, mounts []corev1.VolumeMount) corev1.Container {
	security := confined(user, spec.ReadOnlyRoot)
	args := []string{guestTarget, "init", "--socket", socketTarget, "--reattach", reattachTime}
	if s.SeccompProfile != "" {
		security.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &s.SeccompProfile}
	}
	switch {
	case networkOf(spec, s) == networkOwn:
		args = append(args, "--own-network")
	case s.SeccompProfile != "": // which lets the guest make them
		args = append(args, "--no-namespaces")
	}
	return corev1.Container{
		Name: containerName, Image: spec.Image, ImagePullPolicy: corev1.PullPolicy(s.ImagePullPolicy),
		Command: append(args, spec.QuotaArguments()...), WorkingDir: spec.Workdir, Env: envOf(spec.Env),
		SecurityContext: security, VolumeMounts: mounts, Resources: resourcesOf(spec.Limits),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
}

// confined is the security context that the level restricted asks for.
func confined(user account, readOnlyRoot bool) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsNonRoot: new(true), RunAsUser: &user.uid, RunAsGroup: &user.gid, ReadOnlyRootFilesystem: &readOnlyRoot,
		AllowPrivilegeEscalation: new(bool), Privileged: new(bool), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// resourcesOf are the limits, which are requested too: no node promises more than it has.
func resourcesOf(limits sandbox.Limits) corev1.ResourceRequirements {
	limits = limits.WithDefaults(sandbox.Defaults{Memory: kubekeys.DefaultMemory})
	asked := corev1.ResourceList{}
	if limits.Memory > 0 {
		asked[corev1.ResourceMemory] = *resource.NewQuantity(limits.Memory, resource.BinarySI)
	}
	if limits.Storage.Size > 0 {
		asked[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(limits.Storage.Size, resource.BinarySI)
	}
	if limits.CPUs > 0 {
		asked[corev1.ResourceCPU] = *resource.NewMilliQuantity(int64(math.Ceil(limits.CPUs*1000)), resource.DecimalSI)
		return equalResources(asked)
	}
	all := equalResources(asked)
	all.Requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(idleCPU, resource.DecimalSI)
	return all
}

func equalResources(asked corev1.ResourceList) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: asked, Requests: maps.Clone(asked)}
}

func envOf(env map[string]string) []corev1.EnvVar {
	var list []corev1.EnvVar
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(env[name], "$(", "$$(")})
	}
	return list
}

func tolerations(s *kubekeys.Settings) []corev1.Toleration {
	var list []corev1.Toleration
	for _, t := range s.Tolerations {
		list = append(list, corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOperator(t.Operator), Value: t.Value, Effect: corev1.TaintEffect(t.Effect)})
	}
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		list = append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(lostNodeSeconds))})
	}
	return list
}

// dnsOf is the resolver: the sandbox's own where it has no network.
func dnsOf(spec *sandbox.Spec) *corev1.PodDNSConfig {
	servers := spec.DNS
	if len(servers) == 0 {
		servers = []string{sandbox.NameServer}
	}
	config := &corev1.PodDNSConfig{Nameservers: servers}
	for _, option := range sandbox.ResolverOptions() {
		name, value, _ := strings.Cut(option, ":")
		config.Options = append(config.Options, corev1.PodDNSConfigOption{Name: name, Value: &value})
	}
	return config
}

func aliases(hosts []string) []corev1.HostAlias {
	var list []corev1.HostAlias
	for _, host := range hosts {
		name, address, _ := strings.Cut(host, ":")
		list = append(list, corev1.HostAlias{IP: address, Hostnames: []string{name}})
	}
	return list
}

// hostname makes of a sandbox's name one that Kubernetes takes.
func hostname(name string) string {
	legal := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	return strings.Trim(legal[:min(len(legal), 63)], "-")
}

// account is the user and group of a sandbox.
type account struct{ uid, gid int64 }

func accountOf(user string) (account, error) {
	if user == "" {
		return account{defaultUser, defaultUser}, nil
	}
	first, second, both := strings.Cut(user, ":")
	if !both {
		second = first
	}
	uid, err := strconv.ParseInt(first, 10, 32)
	if err != nil {
		return account{}, err
	}
	gid, err := strconv.ParseInt(second, 10, 32)
	return account{uid, gid}, err
}

// reserved reports whether a path inside belongs to the guest or to the kernel.
func reserved(target string) bool {
	clean := path.Clean(target)
	return !path.IsAbs(target) || slices.ContainsFunc([]string{guestHome, "/proc", "/sys", "/dev"}, func(dir string) bool {
		return clean == "/" || clean == dir || strings.HasPrefix(clean, dir+"/")
	})
}
