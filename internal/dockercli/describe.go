package dockercli

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/dockercli/dockerformat"
)

// The shapes of docker's inspect. Fields that say nothing here have the values
// that an engine gives a container without them.
type (
	inspected struct {
		ID              string `json:"Id"`
		Created         string
		Path            string
		Args            []string
		State           inspectedState
		Image           string
		ResolvConfPath  string
		HostnamePath    string
		HostsPath       string
		LogPath         string
		Name            string
		RestartCount    int
		Driver          string
		Platform        string
		MountLabel      string
		ProcessLabel    string
		AppArmorProfile string
		ExecIDs         []string
		HostConfig      inspectedHost
		Mounts          []inspectedMount
		Config          inspectedConfig
		NetworkSettings inspectedNetwork
	}
	inspectedState struct {
		Status     string
		Running    bool
		Paused     bool
		Restarting bool
		OOMKilled  bool
		Dead       bool
		Pid        int
		ExitCode   int
		Error      string
		StartedAt  string
		FinishedAt string
		Health     *struct{ Status string } `json:",omitempty"` // nothing looks after it
	}
	inspectedHost struct {
		Binds           []string
		ContainerIDFile string
		LogConfig       logConfig
		NetworkMode     string
		PortBindings    map[string][]portBinding
		RestartPolicy   restartPolicy
		AutoRemove      bool
		CapAdd          []string
		CapDrop         []string
		CgroupnsMode    string
		DNS             []string `json:"Dns"`
		ExtraHosts      []string
		GroupAdd        []string
		IpcMode         string
		PidMode         string
		Privileged      bool
		PublishAllPorts bool
		ReadonlyRootfs  bool
		SecurityOpt     []string
		Tmpfs           map[string]string `json:",omitempty"`
		UTSMode         string
		UsernsMode      string
		ShmSize         int64
		Runtime         string
		Memory          int64
		NanoCPUs        int64 `json:"NanoCpus"`
		Devices         []string
		MemorySwap      int64
		PidsLimit       *int64
		Ulimits         []inspectedUlimit
		Init            *bool `json:",omitempty"`
	}
	logConfig     struct{ Type string }
	restartPolicy struct {
		Name              string
		MaximumRetryCount int
	}
	inspectedUlimit struct {
		Name string
		Hard int64
		Soft int64
	}
	inspectedMount struct {
		Type        string
		Source      string
		Destination string
		Mode        string
		RW          bool
		Propagation string
	}
	inspectedConfig struct {
		Hostname     string
		Domainname   string
		User         string
		AttachStdin  bool
		AttachStdout bool
		AttachStderr bool
		Tty          bool
		OpenStdin    bool
		StdinOnce    bool
		Env          []string
		Cmd          []string
		Image        string
		Volumes      map[string]struct{}
		WorkingDir   string
		Entrypoint   []string
		Labels       map[string]string
		StopSignal   string `json:",omitempty"`
		StopTimeout  *int64 `json:",omitempty"`
	}
	inspectedNetwork struct {
		Bridge            string
		SandboxID         string
		SandboxKey        string
		Ports             map[string][]portBinding
		EndpointID        string
		Gateway           string
		IPAddress         string
		IPPrefixLen       int
		IPv6Gateway       string
		GlobalIPv6Address string
		MacAddress        string
		Networks          map[string]endpoint
	}
	endpoint struct {
		NetworkID  string
		EndpointID string
		Gateway    string
		IPAddress  string
		MacAddress string
	}
)

// describe is a container as docker's inspect shows one.
func describe(c *Container, s status) *inspected {
	argv := c.argv()
	networks := map[string]endpoint{network(c): {}}
	return &inspected{
		ID: c.ID, Created: c.Created.Format(time.RFC3339Nano), Path: argv[0], Args: argv[1:], State: describeState(c, s),
		Image: c.ImageID, Name: "/" + c.Name, Driver: "atoll-" + c.Backend, Platform: "linux", AppArmorProfile: c.AppArmor,
		HostConfig: describeHost(c), Mounts: describeMounts(c), Config: describeConfig(c),
		NetworkSettings: inspectedNetwork{Ports: openPorts(c, s), Networks: networks},
	}
}

func network(c *Container) string {
	if c.Network == "" {
		return "none"
	}
	return c.Network
}

func describeState(c *Container, s status) inspectedState {
	state := inspectedState{
		Status: string(s), Running: s == statusRunning || s == statusPaused, Paused: s == statusPaused, Dead: s == statusDead,
		StartedAt: dockerformat.Moment(c.Main.Started), FinishedAt: dockerformat.Moment(c.Main.Finished), Error: c.Main.Error,
	}
	if s == statusExited || s == statusCreated {
		state.ExitCode, state.OOMKilled = c.Main.ExitCode, c.Main.OOM
	}
	if state.Running {
		state.Pid = 1 // what it is on the host stays there
	}
	return state
}

func describeHost(c *Container) inspectedHost {
	host := inspectedHost{
		Binds: c.Binds, LogConfig: logConfig{"json-file"}, NetworkMode: network(c), PortBindings: portBindings(c, func(p Port) int { return p.Asked }),
		RestartPolicy: restartPolicy{Name: "no"}, AutoRemove: c.AutoRemove, CapDrop: []string{"ALL"}, CgroupnsMode: "private",
		DNS: orEmpty(c.DNS), ExtraHosts: c.ExtraHosts, IpcMode: "private", ReadonlyRootfs: c.ReadOnly,
		SecurityOpt: c.SecurityOpt, Tmpfs: c.Tmpfs, Runtime: "atoll", Devices: []string{},
		Memory: c.Limits.Memory, MemorySwap: c.Limits.MemorySwap, NanoCPUs: int64(c.Limits.CPUs * 1e9), Ulimits: []inspectedUlimit{}, Init: c.Init,
	}
	if !slices.ContainsFunc(c.SecurityOpt, func(s string) bool { return strings.HasPrefix(s, "no-new-privileges") }) {
		host.SecurityOpt = append(slices.Clone(c.SecurityOpt), "no-new-privileges")
	}
	if c.Limits.Pids > 0 {
		host.PidsLimit = &c.Limits.Pids
	}
	for _, u := range c.Limits.Ulimits {
		host.Ulimits = append(host.Ulimits, inspectedUlimit{Name: u.Name, Hard: u.Hard, Soft: u.Soft})
	}
	return host
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func describeMounts(c *Container) []inspectedMount {
	mounts := []inspectedMount{}
	for _, m := range c.Mounts {
		mounts = append(mounts, inspectedMount{Type: "bind", Source: m.Source, Destination: m.Target, Mode: m.Mode, RW: !m.ReadOnly, Propagation: "rprivate"})
	}
	return mounts
}

func describeConfig(c *Container) inspectedConfig {
	config := inspectedConfig{
		Hostname: c.Hostname, User: c.User, AttachStdout: c.shows("stdout"), AttachStderr: c.shows("stderr"), AttachStdin: c.stdinOnce(), Tty: c.TTY,
		OpenStdin: c.OpenStdin, StdinOnce: c.stdinOnce(), Env: c.Env, Cmd: c.Cmd, Image: c.Image, WorkingDir: c.Workdir,
		Entrypoint: c.Entrypoint, Labels: c.Labels, StopSignal: c.StopSignal,
	}
	if c.StopAfter > 0 {
		config.StopTimeout = &c.StopAfter
	}
	return config
}

// inspectedImage is an image as docker's inspect shows one.
type inspectedImage struct {
	ID           string `json:"Id"`
	RepoTags     []string
	RepoDigests  []string
	Parent       string
	Comment      string
	Created      string
	Author       string
	Config       imageConfig
	Architecture string
	Os           string
	Size         int64
	RootFS       rootFS
}

type imageConfig struct {
	User       string
	Env        []string
	Cmd        []string
	WorkingDir string
	Entrypoint []string
	Labels     map[string]string
	StopSignal string `json:",omitempty"`
}

type rootFS struct {
	Type   string
	Layers []string
}

func describeImage(i *Image) *inspectedImage {
	return &inspectedImage{
		ID: i.ID, RepoTags: orEmpty(i.Tags), RepoDigests: orEmpty(i.Digests), Created: i.Created, Architecture: i.Arch, Os: i.OS, Size: i.Size,
		Config: imageConfig{User: i.User, Env: i.Env, Cmd: i.Cmd, WorkingDir: i.Workdir, Entrypoint: i.Entrypoint, Labels: i.Labels, StopSignal: i.StopSignal},
		RootFS: rootFS{Type: "layers", Layers: i.Layers},
	}
}

// labelText is "a=b,c=d".
func labelText(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, name+"="+labels[name])
	}
	return strings.Join(parts, ",")
}
