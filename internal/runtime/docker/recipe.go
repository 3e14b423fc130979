package docker

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/hostpath/blockdev"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The paths of the guest inside every sandbox.
const (
	guestHome   = "/.atoll"
	guestTarget = guestHome + "/guest"
	wireTarget  = guestHome + "/wire"
	socketName  = "guest.sock"
)

// guestPidsReserve is added to the pids limit: the guest's own threads must not
// be what a fork bomb starves.
const guestPidsReserve = 32

// The log keeps what the guest says when it cannot start. It is bounded, so
// that nothing inside can fill the engine's disk through it.
const (
	logMaxSize  = "1m"
	logMaxFiles = "1"
)

// Labels beside those of package sandbox. The nonce tells the container of one
// creation from that of another under the same name.
const (
	labelImage = "atoll.image"
	labelNonce = "atoll.nonce"
)

// recipe is everything that a container is made from.
type recipe struct {
	spec         *sandbox.Spec
	flavor       Flavor
	rootless     bool
	installation string
	nonce        string
	now          time.Time
	seccomp      string        // value of the seccomp security option
	mounts       []mount.Mount // guest, wire and the spec's, sources canonical
	wireOwner    *account      // nil: the wire's directory is for everyone inside
	disks        []blockdev.Disk
}

// options are the recipe as the engine reads it.
func (r *recipe) options() (client.ContainerCreateOptions, error) {
	host, err := r.hostConfig()
	if err != nil {
		return client.ContainerCreateOptions{}, err
	}
	return client.ContainerCreateOptions{Name: r.spec.Name, Config: r.config(), HostConfig: host}, nil
}

// config is what the image's own settings are overruled with. Its entry point,
// command and health check would run beside the guest or instead of it.
func (r *recipe) config() *container.Config {
	return &container.Config{
		Image:       r.spec.Image,
		Hostname:    r.hostname(),
		User:        r.spec.User,
		Env:         envList(r.spec.Env),
		WorkingDir:  r.spec.Workdir,
		Entrypoint:  []string{guestTarget},
		Cmd:         append([]string{"init", "--socket", wireTarget + "/" + socketName}, r.spec.QuotaArguments(wireTarget)...),
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGTERM",
		Labels:      r.labels(),
	}
}

// hostname is what the sandbox is called; one that joins another container's network
// has that container's.
func (r *recipe) hostname() string {
	if strings.HasPrefix(r.spec.Network, containerNetwork) {
		return ""
	}
	return r.spec.Host()
}

func envList(env map[string]string) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}

// labels names every label that we ever read, set or not: what is not named
// here could come from the image.
func (r *recipe) labels() map[string]string {
	labels := map[string]string{
		sandbox.LabelAccount: "", sandbox.LabelBrowser: "", sandbox.LabelSetup: "", sandbox.LabelPool: "", sandbox.LabelMountsHash: "", sandbox.LabelAgent: "", sandbox.LabelWorkspace: "",
		labelImage: r.spec.Image, labelNonce: r.nonce, labelLayered: "", labelOverlays: strings.Join(overlayVolumes(r.spec), " "),
	}
	if isLayered(r.spec) {
		labels[labelLayered] = "true"
	}
	maps.Copy(labels, sandbox.Labels(r.spec, r.installation, r.now))
	return labels
}

func (r *recipe) hostConfig() (*container.HostConfig, error) {
	dns, err := parseDNS(r.nameServers())
	if err != nil {
		return nil, err
	}
	resources, err := r.resources()
	if err != nil {
		return nil, err
	}
	guestIsInit := false
	return &container.HostConfig{
		ReadonlyRootfs: r.spec.ReadOnlyRoot,
		Tmpfs:          r.tmpfs(),
		ShmSize:        r.spec.ShmSize,
		Mounts:         r.mounts,
		NetworkMode:    container.NetworkMode(r.spec.Network),
		DNS:            dns,
		DNSOptions:     r.resolverOptions(),
		ExtraHosts:     r.spec.ExtraHosts,
		CapDrop:        r.capDrop(),
		SecurityOpt:    r.securityOptions(),
		MaskedPaths:    r.maskedPaths(),
		ReadonlyPaths:  r.readOnlyPaths(),
		Sysctls:        r.sysctls(),
		UsernsMode:     r.userNamespace(),
		IpcMode:        container.IPCModePrivate,
		CgroupnsMode:   container.CgroupnsModePrivate,
		RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
		LogConfig:      container.LogConfig{Type: "json-file", Config: map[string]string{"max-size": logMaxSize, "max-file": logMaxFiles}},
		Init:           &guestIsInit,
		StorageOpt:     storageOptions(r.spec),
		Resources:      resources,
	}, nil
}

// sysctls returns the kernel's settings of the container. Shared memory that no process
// has attached ends with the last one, as other memory does: a sandbox whose processes
// were ended for want of memory does not keep it.
func (r *recipe) sysctls() map[string]string {
	settings := map[string]string{"kernel.shm_rmid_forced": "1"}
	maps.Copy(settings, r.spec.Sysctls())
	return settings
}

// nameServers returns the addresses of the resolver: the sandbox's own without a network.
func (r *recipe) nameServers() []string {
	if r.spec.Network == "none" && len(r.spec.DNS) == 0 {
		return []string{sandbox.NameServer}
	}
	return r.spec.DNS
}

func (r *recipe) resolverOptions() []string {
	if r.spec.Network != "none" {
		return nil
	}
	return sandbox.ResolverOptions()
}

// readOnlyPaths are the engine's usual ones, and the guest's own files, through which
// root inside could change its OOM score. Podman takes no such list.
func (r *recipe) readOnlyPaths() []string {
	if r.flavor == Podman {
		return nil
	}
	return blueprint.ReadOnly()
}

// maskedPaths are the kernel's files that are seen empty. For Podman they are a
// security option.
func (r *recipe) maskedPaths() []string {
	if r.flavor == Podman {
		return nil
	}
	return blueprint.Masked()
}

// capDrop returns the capabilities to drop. Where a directory of the host can be
// written to, no file there may get capabilities, keep set-user-ID when it is
// changed, or be a device, whatever else is left to the container.
func (r *recipe) capDrop() []string {
	drop := r.spec.CapDrop
	if !r.spec.WritesHost() || slices.ContainsFunc(drop, func(name string) bool { return strings.EqualFold(name, "ALL") }) {
		return drop
	}
	return append(slices.Clone(drop), "SETFCAP", "FSETID", "MKNOD")
}

func (r *recipe) securityOptions() []string {
	options := []string{"no-new-privileges", "seccomp=" + r.seccomp}
	if r.flavor == Podman {
		options = append(options, "mask="+strings.Join(blueprint.Masked(), ":"))
	}
	if r.spec.AppArmorProfile != "" {
		options = append(options, "apparmor="+r.spec.AppArmorProfile)
	}
	return options
}

func parseDNS(servers []string) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for _, server := range servers {
		address, err := netip.ParseAddr(server)
		if err != nil {
			return nil, fmt.Errorf("dns server %q: %w", server, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

func (r *recipe) resources() (container.Resources, error) {
	limits := r.spec.Limits
	resources := container.Resources{
		Memory:     limits.Memory,
		MemorySwap: limits.MemorySwap,
		NanoCPUs:   int64(math.Round(limits.CPUs * 1e9)),
	}
	if limits.Pids > 0 {
		pids := limits.Pids + guestPidsReserve
		resources.PidsLimit = &pids
	}
	r.limitDisks(&resources)
	for _, u := range limits.Ulimits {
		resources.Ulimits = append(resources.Ulimits, &container.Ulimit{Name: u.Name, Soft: u.Soft, Hard: u.Hard})
	}
	if r.spec.GPUs != "" {
		request, err := parseGPUs(r.spec.GPUs)
		if err != nil {
			return resources, err
		}
		resources.DeviceRequests = []container.DeviceRequest{request}
	}
	return resources, nil
}
