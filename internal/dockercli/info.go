package dockercli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/version"
)

// emulatedVersion is the release of docker that is imitated, and
// emulatedAPI that of its API.
const (
	emulatedVersion = "28.2.2"
	emulatedAPI     = "1.50"
)

func buildName() string { return "atoll-" + version.Current().Version }

type versionInfo struct {
	Client versionPart
	Server versionPart
}

type versionPart struct {
	Platform          struct{ Name string }
	Version           string
	APIVersion        string `json:"ApiVersion"`
	DefaultAPIVersion string `json:",omitempty"`
	MinAPIVersion     string `json:",omitempty"`
	GitCommit         string
	GoVersion         string
	Os                string
	Arch              string
	KernelVersion     string `json:",omitempty"`
	Context           string `json:",omitempty"`
}

func versions() versionInfo {
	current := version.Current()
	part := versionPart{Version: emulatedVersion, APIVersion: emulatedAPI, GitCommit: buildName(), GoVersion: current.Go, Os: runtime.GOOS, Arch: runtime.GOARCH}
	part.Platform.Name = "Atoll " + current.Version
	info := versionInfo{Client: part, Server: part}
	info.Client.DefaultAPIVersion, info.Client.Context = emulatedAPI, "default"
	info.Server.MinAPIVersion, info.Server.KernelVersion = "1.24", kernel()
	return info
}

func kernel() string {
	text, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return strings.TrimSpace(string(text))
}

func (c *cli) versionVerb() *verb {
	var format string
	return &verb{usage: " [OPTIONS]", most: 0,
		flags: func(f *flagSet) { f.text(&format, "format", "f") },
		run: func(context.Context, []string) error {
			v := versions()
			if format != "" {
				text, err := c.formatted(format, v)
				if err == nil {
					fmt.Fprintln(c.Out, text)
				}
				return err
			}
			fmt.Fprintf(c.Out, "Client: %s\n", v.Client.Platform.Name)
			fmt.Fprintf(c.Out, " Version:           %s\n API version:       %s\n Go version:        %s\n Git commit:        %s\n OS/Arch:           %s/%s\n Context:           default\n",
				v.Client.Version, v.Client.APIVersion, v.Client.GoVersion, v.Client.GitCommit, v.Client.Os, v.Client.Arch)
			fmt.Fprintf(c.Out, "\nServer: %s\n Engine:\n  Version:          %s\n  API version:      %s (minimum version %s)\n  Go version:       %s\n  Git commit:       %s\n  OS/Arch:          %s/%s\n",
				v.Server.Platform.Name, v.Server.Version, v.Server.APIVersion, v.Server.MinAPIVersion, v.Server.GoVersion, v.Server.GitCommit, v.Server.Os, v.Server.Arch)
			return nil
		}}
}

type systemInfo struct {
	ID                string
	Containers        int
	ContainersRunning int
	ContainersPaused  int
	ContainersStopped int
	Images            int
	Driver            string
	DockerRootDir     string
	NCPU              int
	KernelVersion     string
	OperatingSystem   string
	OSType            string
	Architecture      string
	Name              string
	ServerVersion     string
	SecurityOptions   []string
	Warnings          []string
	MemTotal          int64
	CgroupDriver      string
	CgroupVersion     string
	DefaultRuntime    string
	LoggingDriver     string
	Labels            []string
	Swarm             swarm
	ServerErrors      []string
}

type swarm struct{ LocalNodeState string }

// memory is what this machine has, in bytes.
func memory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// cgroupVersion is that of the machine's control groups, in docker's words.
func cgroupVersion() string {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return "2"
	}
	return "1"
}

func (c *cli) infoVerb() *verb {
	var format string
	return &verb{usage: " [OPTIONS]", most: 0,
		flags: func(f *flagSet) { f.text(&format, "format", "f") },
		run: func(ctx context.Context, _ []string) error {
			info, err := c.info(ctx)
			if err != nil {
				return err
			}
			if format != "" {
				text, err := c.formatted(format, info)
				if err == nil {
					fmt.Fprintln(c.Out, text)
				}
				return err
			}
			fmt.Fprintf(c.Out, "Server: Atoll %s\n Containers: %d\n  Running: %d\n  Paused: %d\n  Stopped: %d\n Images: %d\n Server Version: %s\n Storage Driver: %s\n",
				version.Current().Version, info.Containers, info.ContainersRunning, info.ContainersPaused, info.ContainersStopped, info.Images, info.ServerVersion, info.Driver)
			fmt.Fprintf(c.Out, " Security Options:\n  %s\n Kernel Version: %s\n OSType: %s\n Architecture: %s\n CPUs: %d\n Name: %s\n Docker Root Dir: %s\n",
				strings.Join(info.SecurityOptions, "\n  "), info.KernelVersion, info.OSType, info.Architecture, info.NCPU, info.Name, info.DockerRootDir)
			return nil
		}}
}

func (c *cli) info(ctx context.Context) (*systemInfo, error) {
	name, _ := os.Hostname()
	info := &systemInfo{
		Driver: "atoll-" + c.images.Backend(ctx), DockerRootDir: c.entry.Dir(), NCPU: runtime.NumCPU(), KernelVersion: kernel(), OSType: runtime.GOOS,
		OperatingSystem: "Atoll " + version.Current().Version, Architecture: runtime.GOARCH, Name: name, ServerVersion: emulatedVersion,
		SecurityOptions: []string{"name=seccomp,profile=atoll", "name=no-new-privileges"}, Warnings: []string{},
		MemTotal: memory(), CgroupDriver: "cgroupfs", CgroupVersion: cgroupVersion(), DefaultRuntime: "atoll", LoggingDriver: "json-file",
		Labels: []string{}, Swarm: swarm{"inactive"}, ServerErrors: []string{},
	}
	images, err := c.images.Images(ctx)
	if err != nil {
		return nil, err
	}
	info.Images = len(images)
	list, err := c.records.all()
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		s, err := c.currentStatus(ctx, x)
		if err != nil {
			continue // gone, or going
		}
		info.Containers++
		switch s {
		case statusRunning:
			info.ContainersRunning++
		case statusPaused:
			info.ContainersPaused++
		default:
			info.ContainersStopped++
		}
	}
	return info, nil
}
