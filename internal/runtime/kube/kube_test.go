package kube

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/atoll-run/atoll/internal/config/kubekeys"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// testSpec is what the default configuration asks for, on a private copy.
func testSpec() *sandbox.Spec {
	return &sandbox.Spec{
		Name: "Atoll_Main", ScopeKey: "agent:main", AgentID: "main", Image: "example.org/box@sha256:1", Workdir: "/workspace",
		Env: map[string]string{"B": "$(A)", "A": "1"}, ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"},
		Tmpfs:  []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/run", Options: "size=16m"}},
		Limits: sandbox.Limits{Memory: 1 << 30, CPUs: 1.5},
		Mounts: []sandbox.Mount{{Source: "/state/copy", Target: "/workspace", Kind: sandbox.MountWorkspace, Enclosed: true}},
	}
}

func testSettings() *kubekeys.Settings {
	s := kubekeys.Default()
	s.SeccompProfile = "atoll/sandbox.json"
	return &s
}

func TestPodIsConfined(t *testing.T) {
	pod, err := template(testSpec(), testSettings())
	if err != nil {
		t.Fatal(err)
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever || *pod.Spec.AutomountServiceAccountToken || *pod.Spec.EnableServiceLinks ||
		pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC || pod.Spec.DNSPolicy != corev1.DNSNone || pod.Spec.Hostname != "atoll-main" {
		t.Errorf("%+v", pod.Spec)
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		s := c.SecurityContext
		if !*s.RunAsNonRoot || *s.RunAsUser == 0 || *s.AllowPrivilegeEscalation || *s.Privileged || !*s.ReadOnlyRootFilesystem ||
			len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) > 0 || s.SeccompProfile.Type == corev1.SeccompProfileTypeUnconfined {
			t.Errorf("%s: %+v", c.Name, s)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit == nil {
			t.Errorf("volume %s has no limit, or is none of the pod's own", v.Name)
		}
	}
	box := pod.Spec.Containers[0]
	if box.Resources.Limits.Memory().Value() != 1<<30 || box.Resources.Requests.Memory().Value() != 1<<30 || box.Resources.Requests.Cpu().MilliValue() != 1500 {
		t.Errorf("resources %+v", box.Resources)
	}
	if box.Env[0].Name != "A" || box.Env[1].Value != "$$(A)" {
		t.Errorf("a variable would be expanded: %+v", box.Env)
	}
}

func TestGaps(t *testing.T) {
	r, err := New(Options{Settings: *testSettings(), Installation: "i"})
	if err != nil {
		t.Fatal(err)
	}
	if gaps := r.specGaps(testSpec()); len(gaps) > 0 {
		t.Errorf("%+v", gaps)
	}
	for field, change := range map[string]func(*sandbox.Spec){
		"sandbox.workspaceAccess": func(s *sandbox.Spec) { s.Mounts[0].Enclosed = false },
		"docker.volumes":          func(s *sandbox.Spec) { s.Volumes = []sandbox.Volume{{Name: "v", Target: "/v"}} },
		"docker.user":             func(s *sandbox.Spec) { s.User = "0:0" },
		"docker.pidsLimit":        func(s *sandbox.Spec) { s.Limits.Pids = 64 },
		"docker.ulimits":          func(s *sandbox.Spec) { s.Limits.Ulimits = []sandbox.Ulimit{{Name: "nofile", Soft: 1, Hard: 1}} },
		"docker.network":          func(s *sandbox.Spec) { s.Network = "container:other" },
		"docker.tmpfs":            func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/.atoll/wire"}} },
		"docker.tmpfs, options":   func(s *sandbox.Spec) { s.Tmpfs[0].Options = "size=1m,noexec" },
		"docker.capDrop":          func(s *sandbox.Spec) { s.CapDrop = nil },
		"docker.gpus":             func(s *sandbox.Spec) { s.GPUs = "all" },
		"docker.apparmorProfile":  func(s *sandbox.Spec) { s.AppArmorProfile = "x" },
		"docker.seccompProfile":   func(s *sandbox.Spec) { s.SeccompProfile = "/x.json" },
		"sandbox.browser":         func(s *sandbox.Spec) { s.Kind = sandbox.KindBrowser },
		"sandbox.egress":          func(s *sandbox.Spec) { s.TrustedRoots = "/roots.pem" },
	} {
		spec := testSpec()
		change(spec)
		gaps := r.specGaps(spec)
		field, _, _ = strings.Cut(field, ",")
		if len(gaps) != 1 || gaps[0].Field != field || gaps[0].Remedy == "" {
			t.Errorf("%s: %+v", field, gaps)
		}
	}
	r.settings.SeccompProfile = ""
	if gaps := r.specGaps(testSpec()); len(gaps) != 1 || gaps[0].Field != "docker.network" {
		t.Errorf("no network without what keeps it away: %+v", gaps)
	}
	r.settings.TrustNetworkPolicy = true
	if gaps := r.specGaps(testSpec()); len(gaps) > 0 || networkOf(testSpec(), &r.settings) != "policy (probed)" {
		t.Errorf("a trusted policy: %+v", gaps)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	group := schema.GroupResource{Resource: "pods"}
	for text, want := range map[string]struct {
		kind error
		hint string
	}{
		"exceeded quota: sandboxes, requested: pods=1":                                                 {sandbox.ErrUnavailable, "ResourceQuota"},
		`violates PodSecurity "restricted:latest": privileged`:                                         {sandbox.ErrUnsupported, "Pod Security"},
		"ValidatingAdmissionPolicy 'atoll' denied request: image":                                      {sandbox.ErrUnsupported, "policy"},
		`pod rejected: RuntimeClass "kata" not found`:                                                  {sandbox.ErrUnsupported, "kubernetes.runtimeClass"},
		`User "x" cannot create resource "pods" in API group "" in the namespace "y"`:                  {sandbox.ErrUnavailable, "verb create on pods"},
		`error looking up service account atoll-sandboxes/atoll-sandbox: serviceaccount "a" not found`: {sandbox.ErrUnsupported, "kubernetes.serviceAccount"},
		`maximum memory usage per Container is 1Gi, but limit is 2Gi`:                                  {sandbox.ErrUnsupported, "LimitRange"},
		`unable to create new content in namespace atoll-sandboxes because it is being terminated`:     {sandbox.ErrUnavailable, "namespace"},
		`failed quota: q: must specify limits.cpu for: guest,sandbox`:                                  {sandbox.ErrUnsupported, "docker.cpus"},
		`admission webhook "gatekeeper" denied the request: no`:                                        {sandbox.ErrUnsupported, "webhook"},
		`no PriorityClass with name atoll was found`:                                                   {sandbox.ErrUnsupported, "kubernetes.priorityClass"},
	} {
		err := explain(apierrors.NewForbidden(group, "atl-x", errors.New(text)))
		if !errors.Is(err, want.kind) || !strings.Contains(errhint.Of(err), want.hint) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v (%s)", text, err, errhint.Of(err))
		}
	}
}

func TestPodsThatNeverRun(t *testing.T) {
	waiting := func(name, reason string) *corev1.Pod {
		status := corev1.ContainerStatus{Name: name, Image: "x:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "registry said no"}}}
		return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{status}}}
	}
	for _, c := range []struct {
		pod  *corev1.Pod
		kind error
		text string
		hint string
	}{
		{waiting(installName, "ImagePullBackOff"), sandbox.ErrNoImage, "registry said no", "kubernetes.guestImage"},
		{waiting(containerName, "ErrImageNeverPull"), sandbox.ErrNoImage, "x:1", "kubernetes.imagePullPolicy"},
		{waiting(containerName, "CreateContainerError"), sandbox.ErrUnsupported, "registry said no", "kubectl"},
		{&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "disk pressure"}}, sandbox.ErrUnavailable, "disk pressure", "kubectl"},
		{&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}}}, sandbox.ErrUnavailable, "0/1 nodes", "kubernetes.nodeSelector"},
	} {
		running, err := judge(c.pod, time.Hour)
		if running || !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.text) || !strings.Contains(errhint.Of(err), c.hint) {
			t.Errorf("%v, %v (%s)", running, err, errhint.Of(err))
		}
	}
	if running, err := judge(waiting(containerName, "ContainerCreating"), time.Hour); running || err != nil {
		t.Errorf("a pod that is being made: %v, %v", running, err)
	}
}

// TestDialsAreSpread: a hundred wires that were cut at once do not dial at once, and those
// that gave up waiting take no turn.
func TestDialsAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit, begin := newDialLimit(dialsPerSecond), time.Now()
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for n := range 200 {
			ctx := t.Context()
			if n%2 == 1 {
				ctx = impatient
			}
			all.Go(func() { _ = limit.wait(ctx) })
		}
		all.Wait()
		if took := time.Since(begin); took > 8*time.Second || took < 3*time.Second || limit.count.Load() > 102 {
			t.Errorf("%d dials took %v", limit.count.Load(), took)
		}
		time.Sleep(time.Minute)
		begin = time.Now()
		if err := limit.wait(t.Context()); err != nil || time.Since(begin) > 0 {
			t.Errorf("a dial after a quiet time waits: %v", err)
		}
	})
}

// TestDialsAtOnce: no more sessions than dialsAtOnce are being opened, however slow that is.
func TestDialsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := newDialLimit(1000)
		var dones []func()
		for range dialsAtOnce {
			done, err := limit.start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			dones = append(dones, done)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := limit.start(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one more is opened: %v", err)
		}
		dones[0]()
		if _, err := limit.start(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestTurnsEnd: sessions on which nothing answers do not keep others from being opened.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := newDialLimit(1000)
		for range dialsAtOnce {
			done, err := limit.start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go endTurn(done, func() { time.Sleep(time.Minute) })
		}
		begin := time.Now()
		done, err := limit.start(t.Context())
		if took := time.Since(begin); err != nil || took > turnTimeout {
			t.Errorf("the next session waits %v: %v", took, err)
		}
		endTurn(done, func() {})
		time.Sleep(2 * time.Minute)
		if len(limit.open) != 0 {
			t.Errorf("%d turns have not ended", len(limit.open))
		}
	})
}

func TestNamesAreLegal(t *testing.T) {
	r, err := New(Options{Installation: "Some Installation"})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := r.newPodName("x")
	b, _ := r.newPodName("x")
	if a == b || len(a) > 63 || r.leaseName("x") == r.leaseName("y") || strings.ToLower(a) != a {
		t.Errorf("%s %s", a, b)
	}
}
