package dockercli

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// createOptions are the flags of create and run.
type createOptions struct {
	name, network, user, workdir, entrypoint, hostname, gpus, cidfile, pull, platform string
	labels, labelFiles, env, envFiles, tmpfs, volumes, mounts, capDrop, security      []string
	dns, hosts, attach, publish                                                       []string
	stopSignal, restart                                                               string
	stopAfter                                                                         int64
	limits                                                                            Limits
	readOnly, init, tty, stdin, remove, quiet, noHealth, detached                     bool
}

// The reasons for which flags are refused.
const (
	whyOpens   = "it would open the sandbox; capabilities are always dropped and the host's namespaces and devices stay outside"
	whyNoNet   = "a sandbox has no ports towards the network; it is reached over its wire"
	whyNoLimit = "this limit is not one that Atoll enforces; --memory, --memory-swap, --cpus, --pids-limit and --ulimit are"
	whyNoVerb  = "Atoll has no such thing to give"
	whyNoWatch = "nothing runs beside the sandbox that could look after it"
	whyNoSize  = "the size of a sandbox's files is not measured"
	whyNoTimes = "the times of lines are not recorded"
	whyNoOwner = "owners do not travel: files belong to whoever receives them"
	whyNoLink  = "links are never followed"
	whyOneArch = "an image is here for this machine's platform only"
	whyNoHost  = "this front end has no daemon: it works on the sandboxes of $ATOLL_STATE_DIR"
	whyNoStore = "only a host directory, by its absolute path, can be mounted; volumes of an engine are not kept here"
)

// hints say what to do instead of what is refused for a reason.
func hints() map[string]string {
	return map[string]string{
		whyOpens:   "leave it out: the sandbox has what its command needs, or the command is not one for a sandbox",
		whyNoNet:   "speak to the command through `docker exec`, or share files with -v /source:/target",
		whyNoLimit: "use one of those, or leave it out",
		whyNoVerb:  "leave it out",
		whyNoWatch: "look after it from outside, with docker wait and docker start",
		whyNoSize:  "leave it out; `docker exec CONTAINER du -sh /` measures from inside",
		whyNoTimes: "leave it out; let the command write the time itself",
		whyNoOwner: "leave it out",
		whyNoLink:  "name the file that the link leads to",
		whyOneArch: "leave it out",
		whyNoHost:  "set ATOLL_STATE_DIR to work on others",
		whyNoStore: "make a directory and mount it: -v /source:/target",
	}
}

func (o *createOptions) add(f *flagSet) {
	f.mixed = false
	for _, x := range []struct {
		to          *string
		name, short string
	}{
		{&o.name, "name", ""}, {&o.network, "network", ""}, {&o.network, "net", ""}, {&o.user, "user", "u"}, {&o.workdir, "workdir", "w"},
		{&o.entrypoint, "entrypoint", ""}, {&o.hostname, "hostname", "h"}, {&o.gpus, "gpus", ""}, {&o.cidfile, "cidfile", ""},
		{&o.pull, "pull", ""}, {&o.platform, "platform", ""}, {&o.stopSignal, "stop-signal", ""}, {&o.restart, "restart", ""},
	} {
		f.text(x.to, x.name, x.short)
	}
	for _, x := range []struct {
		to          *[]string
		name, short string
	}{
		{&o.labels, "label", "l"}, {&o.labelFiles, "label-file", ""}, {&o.envFiles, "env-file", ""}, {&o.tmpfs, "tmpfs", ""},
		{&o.volumes, "volume", "v"}, {&o.mounts, "mount", ""}, {&o.capDrop, "cap-drop", ""}, {&o.security, "security-opt", ""},
		{&o.dns, "dns", ""}, {&o.hosts, "add-host", ""}, {&o.publish, "publish", "p"},
	} {
		f.list(x.to, x.name, x.short)
	}
	f.variables(&o.env)
	f.streams(&o.attach, "attach", "a")
	o.limits.add(f)
	f.number(&o.stopAfter, "stop-timeout", "")
	f.boolean(&o.readOnly, "read-only", "")
	f.boolean(&o.init, "init", "")
	f.boolean(&o.tty, "tty", "t")
	f.boolean(&o.stdin, "interactive", "i")
	f.boolean(&o.remove, "rm", "")
	f.boolean(&o.quiet, "quiet", "q")
	f.boolean(&o.noHealth, "no-healthcheck", "") // the guest is process 1: there never is one
	refuseUnsupported(f)
}

// refuseUnsupported declares every other flag of docker's create as refused.
func refuseUnsupported(f *flagSet) {
	f.refuse(whyOpens, "privileged!", "cap-add", "device", "device-cgroup-rule", "pid", "ipc", "uts", "userns", "cgroupns", "cgroup-parent",
		"group-add", "runtime", "sysctl", "volumes-from", "volume-driver", "disable-content-trust!", "use-api-socket!", "oom-kill-disable!")
	f.refuse(whyNoNet, "publish-all,P!", "expose", "ip", "ip6", "link", "link-local-ip", "mac-address", "network-alias", "net-alias",
		"dns-option", "dns-opt", "dns-search", "domainname")
	f.refuse(whyNoLimit, "blkio-weight", "blkio-weight-device", "cpu-count", "cpu-percent", "cpu-period", "cpu-quota", "cpu-rt-period",
		"cpu-rt-runtime", "cpu-shares,c", "cpuset-cpus", "cpuset-mems", "device-read-bps", "device-read-iops", "device-write-bps",
		"device-write-iops", "io-maxbandwidth", "io-maxiops", "kernel-memory", "memory-reservation", "memory-swappiness", "oom-score-adj",
		"shm-size", "storage-opt", "isolation")
	f.refuse(whyNoWatch, "health-cmd", "health-interval", "health-retries", "health-start-period", "health-start-interval", "health-timeout",
		"log-driver", "log-opt")
	f.refuse(whyNoVerb, "annotation", "detach-keys")
}

// container is what the flags and arguments ask for.
func (o *createOptions) container(image string, command []string, getenv func(string) string) (*Container, error) {
	c := &Container{
		Name: o.name, Image: image, Hostname: o.hostname, Cmd: command, Workdir: o.workdir, User: o.user, TTY: o.tty, OpenStdin: o.stdin, Detached: o.detached,
		StopSignal: o.stopSignal, StopAfter: o.stopAfter, ReadOnly: o.readOnly, AutoRemove: o.remove,
		Network: o.network, Attach: o.attach, DNS: o.dns, ExtraHosts: o.hosts, CapDrop: o.capDrop, GPUs: o.gpus, Limits: o.limits, Tmpfs: map[string]string{},
	}
	c.Limits.Pids = max(c.Limits.Pids, 0) // -1 is no limit
	if o.init {
		c.Init = &o.init // the guest is one, always
	}
	for _, step := range []func(*Container) error{o.simple, o.storage, o.securityOptions} {
		if err := step(c); err != nil {
			return nil, err
		}
	}
	var err error
	if c.Ports, err = readPorts(o.publish); err != nil {
		return nil, err
	}
	if c.Labels, err = readLabels(o.labelFiles, o.labels); err != nil {
		return nil, err
	}
	c.Env, err = readEnv(o.envFiles, o.env, getenv)
	return c, err
}

// simple checks the flags that are one value each.
func (o *createOptions) simple(c *Container) error {
	switch {
	case o.hostname != "" && !validHost.MatchString(o.hostname):
		return localError("invalid hostname format: " + o.hostname)
	case o.restart != "" && o.restart != "no":
		return &refusal{"--restart " + o.restart, whyNoWatch, hints()[whyNoWatch]}
	case o.platform != "" && o.platform != "linux" && !strings.HasPrefix(o.platform, "linux/"+runtime.GOARCH):
		return &refusal{"--platform " + o.platform, "sandboxes run on this machine's kernel and processor", "leave it out"}
	case o.pull != "" && o.pull != "missing" && o.pull != "never" && o.pull != "always":
		return localError(fmt.Sprintf("invalid pull option: '%s': must be one of \"always\", \"missing\" or \"never\"", o.pull))
	}
	if o.stopSignal != "" {
		if _, err := signalName(o.stopSignal); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(o.cidfile); o.cidfile != "" && err == nil {
		return localError("container ID file found, make sure the other container isn't running or delete " + o.cidfile)
	}
	if o.entrypoint != "" {
		c.Entrypoint = []string{o.entrypoint}
	}
	return nil
}

// securityOptions accepts what makes a sandbox tighter.
func (o *createOptions) securityOptions(c *Container) error {
	for _, text := range o.security {
		name, value, _ := strings.Cut(strings.Replace(text, ":", "=", 1), "=")
		switch {
		case name == "no-new-privileges" && value != "false":
		case name == "seccomp" && value != "unconfined" && value != "":
			c.Seccomp = value
		case name == "apparmor" && value != "unconfined" && value != "":
			c.AppArmor = value
		default:
			return &refusal{"--security-opt " + text, "it would loosen the sandbox, or is not known", "leave it out: no-new-privileges, and a filter of system calls, are always on"}
		}
	}
	c.SecurityOpt = o.security
	return nil
}
