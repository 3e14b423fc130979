package linux

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/atoll-run/atoll/internal/hostpath"
	"github.com/atoll-run/atoll/internal/runtime/blueprint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// The parts that every sandbox has: devices, the kernel's own files, its name.

// hostDevices are the only devices of the host that are seen inside.
var hostDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

func devices(shmSize int64) []blueprint.Mount {
	link := func(name, to string) blueprint.Mount {
		return blueprint.Mount{Kind: blueprint.Link, Target: "/dev/" + name, Text: to}
	}
	return []blueprint.Mount{
		{Kind: blueprint.Tmpfs, Target: "/dev", Options: "mode=0755,size=64k,nr_inodes=64", NoExec: true},
		{Kind: blueprint.Devpts, Target: "/dev/pts", Options: "newinstance,ptmxmode=0666,mode=0620"},
		{Kind: blueprint.Tmpfs, Target: "/dev/shm", Options: fmt.Sprintf("mode=1777,size=%d", cmp.Or(shmSize, sandbox.DefaultShmSize)), NoExec: true},
		{Kind: blueprint.Mqueue, Target: "/dev/mqueue"},
		link("ptmx", "pts/ptmx"), link("fd", "/proc/self/fd"),
		link("stdin", "/proc/self/fd/0"), link("stdout", "/proc/self/fd/1"), link("stderr", "/proc/self/fd/2"),
	}
}

func (d *draft) bindDevices() error {
	for _, device := range hostDevices {
		if err := d.bind(device, device, false, hostpath.ID{}); err != nil {
			return err
		}
	}
	d.step(blueprint.Mount{Kind: blueprint.SealTree, Target: "/dev"})
	return nil
}

func kernelFiles() []blueprint.Mount {
	mounts := []blueprint.Mount{{Kind: blueprint.Proc, Target: "/proc"}, {Kind: blueprint.Sysfs, Target: "/sys"}}
	for _, target := range blueprint.ReadOnly() {
		mounts = append(mounts, blueprint.Mount{Kind: blueprint.Seal, Target: target})
	}
	for _, target := range blueprint.Masked() {
		mounts = append(mounts, blueprint.Mount{Kind: blueprint.Mask, Target: target})
	}
	return mounts
}

// bound is a directory of the sandbox's control group and where it is seen.
type bound struct{ source, target string }

// bindGroups mounts the sandbox's own control groups, read-only.
func (d *draft) bindGroups(groups []bound) error {
	if len(groups) > 0 && groups[0].target != groupHome {
		d.step(blueprint.Mount{Kind: blueprint.Tmpfs, Target: groupHome, Options: "mode=0755,size=4k,nr_inodes=32", NoExec: true})
	}
	for _, g := range groups {
		if err := d.bind(g.source, g.target, true, hostpath.ID{}); err != nil {
			return err
		}
	}
	if len(groups) > 0 {
		d.step(blueprint.Mount{Kind: blueprint.SealTree, Target: groupHome})
	}
	return nil
}

// etcFiles returns /etc/hostname, /etc/hosts and /etc/resolv.conf.
func etcFiles(spec *sandbox.Spec) []blueprint.Mount {
	var hosts strings.Builder
	fmt.Fprintf(&hosts, "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n", spec.Host())
	for _, extra := range spec.ExtraHosts {
		name, address, _ := strings.Cut(extra, ":")
		fmt.Fprintf(&hosts, "%s\t%s\n", address, name)
	}
	return []blueprint.Mount{
		{Kind: blueprint.File, Target: "/etc/hostname", Text: spec.Host() + "\n", Mode: 0o644},
		{Kind: blueprint.File, Target: "/etc/hosts", Text: hosts.String(), Mode: 0o644},
		{Kind: blueprint.File, Target: "/etc/resolv.conf", Text: sandbox.ResolvConf(), Mode: 0o644},
	}
}

// tmpfsShare is the part of the memory limit that temporary file systems
// without a size of their own may hold together, in percent: were it all of it,
// a full /tmp would end the guest.
const tmpfsShare = 75

// tmpfsSize is what each file system without a size gets; "" is the kernel's
// default, half of the machine's memory.
func tmpfsSize(spec *sandbox.Spec) string {
	unsized := int64(0)
	for _, t := range spec.Tmpfs {
		if !strings.Contains(","+t.Options, ",size=") {
			unsized++
		}
	}
	memory := spec.Limits.WithDefaults(spec.Limits.Defaults).Memory
	if unsized == 0 || memory == 0 {
		return ""
	}
	return fmt.Sprintf("size=%d", memory/100*tmpfsShare/unsized)
}

// tmpfsMount reads options as Docker does: noexec, nosuid and nodev unless the
// contrary is configured. nosuid and nodev are always set.
func tmpfsMount(t sandbox.Tmpfs, share string) (blueprint.Mount, error) {
	m := blueprint.Mount{Kind: blueprint.Tmpfs, Target: path.Clean(t.Target), NoExec: true}
	mode, size := "mode=1777", share
	for option := range strings.SplitSeq(t.Options, ",") {
		option = strings.TrimSpace(option)
		switch name, _, _ := strings.Cut(option, "="); name {
		case "", "rw", "noexec", "nosuid", "nodev", "noatime", "relatime":
		case "exec":
			m.NoExec = false
		case "ro":
			m.ReadOnly = true
		case "mode":
			mode = option
		case "size":
			size = option
		case "nr_inodes", "nr_blocks", "uid", "gid":
			mode += "," + option
		default:
			return m, fmt.Errorf("tmpfs %s: option %q is not known: %w", t.Target, option, sandbox.ErrUnsupported)
		}
	}
	m.Options = strings.Trim(mode+","+size, ",")
	return m, nil
}
