package lima

import (
	"bytes"

	"go.yaml.in/yaml/v3"

	"github.com/atoll-run/atoll/internal/config/vmkeys"
	"github.com/atoll-run/atoll/internal/vm/profile"
)

// The driver and the kind of mounts, by the system that the virtual machine runs on.
const (
	driverApple  = "vz"
	driverOther  = "qemu"
	mountsApple  = "virtiofs"
	mountsOther  = "9p"
	systemApple  = "darwin"
	header       = "# Written by atoll vm from the profile; changes are lost.\n"
	ubuntuImages = "https://cloud-images.ubuntu.com/releases/24.04/release/ubuntu-24.04-server-cloudimg-"
)

// file is a file of Lima, as far as we write it.
type file struct {
	MinimumLimaVersion string        `yaml:"minimumLimaVersion"`
	VMType             string        `yaml:"vmType"`
	VMOpts             *vmOpts       `yaml:"vmOpts,omitempty"`  // 2.x
	Rosetta            *rosetta      `yaml:"rosetta,omitempty"` // 1.x
	Images             []image       `yaml:"images"`
	CPUs               int           `yaml:"cpus"`
	Memory             string        `yaml:"memory"`
	Disk               string        `yaml:"disk"`
	MountType          string        `yaml:"mountType"`
	Mounts             []mount       `yaml:"mounts"`
	SSH                ssh           `yaml:"ssh"`
	Containerd         containerd    `yaml:"containerd"`
	PropagateProxyEnv  bool          `yaml:"propagateProxyEnv"`
	PortForwards       []portForward `yaml:"portForwards"`
}

type vmOpts struct {
	VZ struct {
		Rosetta rosetta `yaml:"rosetta"`
	} `yaml:"vz"`
}

type rosetta struct {
	Enabled bool `yaml:"enabled"`
	BinFmt  bool `yaml:"binfmt"`
}

type image struct {
	Location string `yaml:"location"`
	Arch     string `yaml:"arch"`
}

type mount struct {
	Location   string `yaml:"location"`
	MountPoint string `yaml:"mountPoint"`
	Writable   bool   `yaml:"writable"`
}

type ssh struct {
	LoadDotSSHPubKeys bool `yaml:"loadDotSSHPubKeys"`
	ForwardAgent      bool `yaml:"forwardAgent"`
}

type containerd struct {
	System bool `yaml:"system"`
	User   bool `yaml:"user"`
}

type portForward struct {
	GuestIP           string `yaml:"guestIP"`
	GuestIPMustBeZero *bool  `yaml:"guestIPMustBeZero,omitempty"`
	GuestPort         int    `yaml:"guestPort,omitempty"`
	HostIP            string `yaml:"hostIP,omitempty"`
	HostPort          int    `yaml:"hostPort,omitempty"`
	Proto             string `yaml:"proto"`
	Ignore            bool   `yaml:"ignore,omitempty"`
}

// Target is the Lima, and the system, that a file is for.
type Target struct {
	Version Version
	System  string // GOOS
	Arch    string // GOARCH
}

// YAML returns the file of a virtual machine. Every text in it is data: the library
// quotes what has a meaning in YAML.
func YAML(p *vmkeys.Profile, mounts []profile.Mount, t Target) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(header)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(newFile(p, mounts, t)); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

func newFile(p *vmkeys.Profile, mounts []profile.Mount, t Target) *file {
	f := &file{
		MinimumLimaVersion: Version{Major: t.Version.Major}.String(),
		VMType:             driverOther, MountType: mountsOther,
		Images: []image{{ubuntuImages + "arm64.img", "aarch64"}, {ubuntuImages + "amd64.img", "x86_64"}},
		CPUs:   p.CPUs, Memory: profile.Size(p.Memory), Disk: profile.Size(p.Disk),
		Mounts: mountsOf(mounts), PortForwards: forwards(p.Port),
	}
	if t.System == systemApple {
		f.VMType, f.MountType = driverApple, mountsApple
		f.rosetta(p.Rosetta && t.Arch == "arm64", t.Version)
	}
	return f
}

// rosetta says whether programs for Intel run; 2.x has another place for it.
func (f *file) rosetta(on bool, v Version) {
	r := rosetta{on, on}
	if v.Major < 2 {
		f.Rosetta = &r
		return
	}
	f.VMOpts = &vmOpts{}
	f.VMOpts.VZ.Rosetta = r
}

// mountsOf returns the mounts in the form of the file: never a null list, which would
// be filled from Lima's own defaults.
func mountsOf(list []profile.Mount) []mount {
	out := make([]mount, 0, len(list))
	for _, m := range list {
		out = append(out, mount{m.Source, m.Point, m.Writable})
	}
	return out
}

// forwards returns the one port that is forwarded, and the rule that no other is:
// without it Lima forwards every port that is listened on inside.
func forwards(port int) []portForward {
	mustBeZero := false
	return []portForward{
		{GuestIP: "127.0.0.1", GuestPort: port, HostIP: "127.0.0.1", HostPort: port, Proto: "tcp"},
		{GuestIP: "0.0.0.0", GuestIPMustBeZero: &mustBeZero, Proto: "any", Ignore: true},
	}
}
