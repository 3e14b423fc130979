package docker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/api/types/mount"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// plainSpec is what the defaults of the configuration give.
func plainSpec() *sandbox.Spec {
	return &sandbox.Spec{
		Name: "sbx-1", ScopeKey: "agent:main", AgentID: "main", ConfigHash: "c0ffee", MountsHash: "feed",
		Image: "openclaw-sandbox:bookworm-slim", Workdir: "/workspace", User: "1000:1000",
		ReadOnlyRoot: true, Network: "none", CapDrop: []string{"ALL"},
	}
}

// sent is the JSON of one setting as it goes to the engine.
func sent(t *testing.T, r *recipe, path ...string) any {
	t.Helper()
	options, err := r.options()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{"Config": options.Config, "HostConfig": options.HostConfig})
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		tree = tree.(map[string]any)[key]
	}
	return tree
}

type list = []any
type object = map[string]any

func TestRecipeSendsEveryProperty(t *testing.T) {
	cases := []struct {
		name   string
		change func(*sandbox.Spec)
		path   string
		want   any
	}{
		{"guest is the command", nil, "Config.Entrypoint", list{"/.atoll/guest"}},
		{"guest listens on the wire", nil, "Config.Cmd", list{"init", "--socket", "/.atoll/wire/guest.sock"}},
		{"no health check of the image", nil, "Config.Healthcheck", object{"Test": list{"NONE"}}},
		{"stop signal", nil, "Config.StopSignal", "SIGTERM"},
		{"host name", nil, "Config.Hostname", "sbx-1"},
		{"user", nil, "Config.User", "1000:1000"},
		{"the image's user", func(s *sandbox.Spec) { s.User = "" }, "Config.User", ""},
		{"workdir", nil, "Config.WorkingDir", "/workspace"},
		{"env in order", func(s *sandbox.Spec) { s.Env = map[string]string{"LANG": "C.UTF-8", "A": "x=y"} }, "Config.Env", list{"A=x=y", "LANG=C.UTF-8"}},
		{"no init of the engine", nil, "HostConfig.Init", false},
		{"never restarted", nil, "HostConfig.RestartPolicy.Name", "no"},
		{"bounded log", nil, "HostConfig.LogConfig", object{"Type": "json-file", "Config": object{"max-size": "1m", "max-file": "1"}}},
		{"private ipc", nil, "HostConfig.IpcMode", "private"},
		{"private cgroups", nil, "HostConfig.CgroupnsMode", "private"},
		{"not privileged", nil, "HostConfig.Privileged", false},
		{"read-only root", nil, "HostConfig.ReadonlyRootfs", true},
		{"writable root", func(s *sandbox.Spec) { s.ReadOnlyRoot = false }, "HostConfig.ReadonlyRootfs", false},
		{"network", func(s *sandbox.Spec) { s.Network = "my-net" }, "HostConfig.NetworkMode", "my-net"},
		{"capabilities", func(s *sandbox.Spec) { s.CapDrop = []string{"NET_RAW"} }, "HostConfig.CapDrop", list{"NET_RAW"}},
		{"capabilities that mark files of the host", func(s *sandbox.Spec) {
			s.CapDrop, s.Mounts = []string{"NET_RAW"}, []sandbox.Mount{{Source: "/srv", Target: "/srv"}}
		}, "HostConfig.CapDrop", list{"NET_RAW", "SETFCAP", "FSETID", "MKNOD"}},
		{"security options", nil, "HostConfig.SecurityOpt", list{"no-new-privileges", "seccomp={}"}},
		{"apparmor", func(s *sandbox.Spec) { s.AppArmorProfile = "mine" }, "HostConfig.SecurityOpt", list{"no-new-privileges", "seccomp={}", "apparmor=mine"}},
		{"dns", func(s *sandbox.Spec) { s.DNS = []string{"1.1.1.1", "fd00::1"} }, "HostConfig.Dns", list{"1.1.1.1", "fd00::1"}},
		{"its own resolver without a network", nil, "HostConfig.Dns", list{"127.0.0.1"}},
		{"options of its own resolver", nil, "HostConfig.DnsOptions", list{"timeout:5", "attempts:2"}},
		{"no resolver of its own on a network", func(s *sandbox.Spec) { s.Network = "bridge" }, "HostConfig.Dns", nil},
		{"all ports for everyone without a network", nil, "HostConfig.Sysctls", object{"kernel.shm_rmid_forced": "1", "net.ipv4.ip_unprivileged_port_start": "0"}},
		{"the engine's ports on a network", func(s *sandbox.Spec) { s.Network = "container:abc" }, "HostConfig.Sysctls", object{"kernel.shm_rmid_forced": "1"}},
		{"extra hosts", func(s *sandbox.Spec) { s.ExtraHosts = []string{"db:10.0.0.2"} }, "HostConfig.ExtraHosts", list{"db:10.0.0.2"}},
		{"pids and the guest's reserve", func(s *sandbox.Spec) { s.Limits.Pids = 100 }, "HostConfig.PidsLimit", float64(100 + guestPidsReserve)},
		{"no pids limit", nil, "HostConfig.PidsLimit", nil},
		{"memory", func(s *sandbox.Spec) { s.Limits.Memory = 1 << 30 }, "HostConfig.Memory", float64(1 << 30)},
		{"swap", func(s *sandbox.Spec) { s.Limits.MemorySwap = 2 << 30 }, "HostConfig.MemorySwap", float64(2 << 30)},
		{"unlimited swap", func(s *sandbox.Spec) { s.Limits.MemorySwap = -1 }, "HostConfig.MemorySwap", float64(-1)},
		{"cpus", func(s *sandbox.Spec) { s.Limits.CPUs = 1.1 }, "HostConfig.NanoCpus", float64(1_100_000_000)},
		{"ulimits", func(s *sandbox.Spec) { s.Limits.Ulimits = []sandbox.Ulimit{{Name: "nofile", Soft: 10, Hard: 20}} },
			"HostConfig.Ulimits", list{object{"Name": "nofile", "Soft": float64(10), "Hard": float64(20)}}},
		{"gpus", func(s *sandbox.Spec) { s.GPUs = "all" }, "HostConfig.DeviceRequests", list{object{
			"Driver": "", "Count": float64(-1), "DeviceIDs": nil, "Capabilities": list{list{"gpu"}}, "Options": object{}}}},
		{"tmpfs", func(s *sandbox.Spec) { s.Tmpfs = []sandbox.Tmpfs{{Target: "/tmp", Options: "size=64m,exec"}} },
			"HostConfig.Tmpfs", object{"/tmp": "size=64m,exec,nosuid,nodev,mode=1777"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec := plainSpec()
			if c.change != nil {
				c.change(spec)
			}
			r := &recipe{spec: spec, flavor: Docker, seccomp: "{}"}
			if diff := cmp.Diff(c.want, sent(t, r, splitPath(c.path)...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.path, diff)
			}
		})
	}
}

// The kernel's files that tell of the host are masked on both engines, each told
// in its own way.
func TestRecipeMasksKernelFiles(t *testing.T) {
	masked := sent(t, &recipe{spec: plainSpec(), flavor: Docker}, "HostConfig", "MaskedPaths").(list)
	if len(masked) < 20 || !slices.Contains(masked, any("/proc/pressure")) || !slices.Contains(masked, any("/proc/kcore")) {
		t.Errorf("Docker is told to mask %v", masked)
	}
	options := fmt.Sprint(sent(t, &recipe{spec: plainSpec(), flavor: Podman}, "HostConfig", "SecurityOpt"))
	if !strings.Contains(options, "mask=") || !strings.Contains(options, ":/proc/pressure:") {
		t.Errorf("Podman is told %s", options)
	}
	if got := sent(t, &recipe{spec: plainSpec(), flavor: Docker}, "HostConfig", "Sysctls", "kernel.shm_rmid_forced"); got != "1" {
		t.Errorf("shared memory without a process stays: %v", got)
	}
}

func splitPath(path string) (keys []string) {
	for start, i := 0, 0; i <= len(path); i++ {
		if i == len(path) || path[i] == '.' {
			keys, start = append(keys, path[start:i]), i+1
		}
	}
	return keys
}

func TestJoinedNetworkHasNoHostname(t *testing.T) {
	spec := plainSpec()
	spec.Network = "container:abc"
	if got := sent(t, &recipe{spec: spec}, "Config", "Hostname"); got != "" {
		t.Errorf("host name is %q; engines refuse one beside a joined network", got)
	}
}

func TestLabelsCannotComeFromTheImage(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_123)
	r := &recipe{spec: plainSpec(), installation: "inst", nonce: "n", now: now}
	want := map[string]string{
		"openclaw.sandbox": "1", "openclaw.sandboxBrowser": "", "openclaw.sessionKey": "agent:main", "openclaw.createdAtMs": "1700000000123",
		"openclaw.configHash": "c0ffee", "atoll.installation": "inst", "atoll.agent": "main", "atoll.mountsHash": "feed",
		"atoll.account": "", "atoll.pool": "", "atoll.setup": "", "atoll.workspace": "", "atoll.image": "openclaw-sandbox:bookworm-slim", "atoll.nonce": "n", "atoll.layered": "", "atoll.overlays": "",
	}
	if diff := cmp.Diff(want, r.labels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestMountsOfASpec(t *testing.T) {
	dir := t.TempDir()
	spec := plainSpec()
	spec.Mounts = []sandbox.Mount{{Source: dir, Target: "/workspace"}, {Source: dir, Target: "/agent", ReadOnly: true}}
	spec.Volumes = []sandbox.Volume{{Name: "cache", Target: "/cache", ReadOnly: true}}
	r := &recipe{spec: spec}
	if _, err := r.addMounts(); err != nil {
		t.Fatal(err)
	}
	want := []mount.Mount{
		{Type: "bind", Source: dir, Target: "/workspace", BindOptions: &mount.BindOptions{Propagation: "rprivate"}},
		{Type: "bind", Source: dir, Target: "/agent", ReadOnly: true, BindOptions: &mount.BindOptions{Propagation: "rprivate", NonRecursive: true}},
		{Type: "volume", Source: "cache", Target: "/cache", ReadOnly: true},
	}
	if diff := cmp.Diff(want, r.mounts); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

func TestTmpfsOptions(t *testing.T) {
	const limit = 1000 << 20
	tmp := func(options string) sandbox.Tmpfs { return sandbox.Tmpfs{Target: "/tmp", Options: options} }
	cases := []struct {
		name   string
		flavor Flavor
		memory int64
		tmpfs  []sandbox.Tmpfs
		want   map[string]string
	}{
		{"docker's defaults are spelled out", Docker, 0, []sandbox.Tmpfs{tmp("")},
			map[string]string{"/tmp": "noexec,nosuid,nodev,mode=1777"}},
		{"what was asked wins", Docker, limit, []sandbox.Tmpfs{tmp("exec,suid,dev,mode=700,size=1g")},
			map[string]string{"/tmp": "exec,suid,dev,mode=700,size=1g"}},
		{"sizes stay below the memory limit together", Docker, limit, []sandbox.Tmpfs{tmp(""), {Target: "/run"}, {Target: "/big", Options: "size=5m"}},
			map[string]string{"/tmp": "noexec,nosuid,nodev,mode=1777,size=393216000", "/run": "noexec,nosuid,nodev,mode=1777,size=393216000",
				"/big": "size=5m,noexec,nosuid,nodev,mode=1777"}},
		{"podman copies nothing and opens nothing", Podman, 0, []sandbox.Tmpfs{tmp("")},
			map[string]string{"/tmp": "noexec,nosuid,nodev,mode=1777,notmpcopyup", "/run": sealedTmpfs, "/var/tmp": sealedTmpfs}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec := plainSpec()
			spec.Tmpfs, spec.Limits.Memory = c.tmpfs, c.memory
			r := &recipe{spec: spec, flavor: c.flavor}
			if diff := cmp.Diff(c.want, r.tmpfs()); diff != "" {
				t.Errorf("tmpfs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRootlessPodmanKeepsTheUser(t *testing.T) {
	cases := []struct {
		flavor   Flavor
		rootless bool
		user     string
		want     string
	}{
		{Docker, true, "1000:1000", ""},
		{Podman, false, "1000:1000", ""},
		{Podman, true, "1000:1001", "keep-id:uid=1000,gid=1001"},
		{Podman, true, "1000", "keep-id:uid=1000"},
		{Podman, true, "", "keep-id"},
		{Podman, true, "node", "keep-id"},
	}
	for _, c := range cases {
		spec := plainSpec()
		spec.User = c.user
		r := &recipe{spec: spec, flavor: c.flavor, rootless: c.rootless}
		if got := string(r.userNamespace()); got != c.want {
			t.Errorf("%s rootless=%v user %q: got %q, want %q", c.flavor, c.rootless, c.user, got, c.want)
		}
	}
}
