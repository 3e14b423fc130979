package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// The checks of what a sandbox is made of, apart from mounts and network.

func checkPrefix(docker config.Docker, _ Host) (found findings) {
	if docker.ContainerPrefix != "" && !validContainerName(docker.ContainerPrefix+"x") {
		found.add("containerPrefix", "Use letters, digits, \"_\", \".\" and \"-\", with a letter or digit first.",
			"container prefix %q makes names that no engine accepts", docker.ContainerPrefix)
	}
	return found
}

func checkWorkdir(docker config.Docker, _ Host) (found findings) {
	workdir := NormalizePath(docker.Workdir)
	switch {
	case !strings.HasPrefix(docker.Workdir, "/") || hasControl(docker.Workdir) || strings.Contains(docker.Workdir, ":"):
		found.add("workdir", "Write a path from /, such as /workspace.", "workdir %q is not an absolute path without colons", docker.Workdir)
	case workdir == "/" || belongsToSystem(workdir):
		found.add("workdir", "Use a directory of its own, such as /workspace.", "workdir %q would hide the system of the sandbox", docker.Workdir)
	case within(workdir, InternalTarget) || within(workdir, AgentTarget):
		found.add("workdir", "Use another directory, such as /workspace.", "workdir %q is reserved", docker.Workdir)
	}
	return found
}

// belongsToSystem tells whether a container path is one that every program
// inside needs as the image made it.
func belongsToSystem(p string) bool {
	return within(p, "/proc") || within(p, "/sys") || within(p, "/dev") ||
		slices.Contains([]string{"/bin", "/etc", "/lib", "/lib64", "/sbin", "/usr"}, p)
}

func checkProfiles(docker config.Docker, _ Host) (found findings) {
	for _, profile := range []struct{ field, value string }{
		{"seccompProfile", docker.SeccompProfile},
		{"apparmorProfile", docker.AppArmorProfile},
	} {
		switch {
		case strings.EqualFold(trim(profile.value), "unconfined"):
			found.add(profile.field, "Remove it to use the built-in profile, or name a profile of your own.",
				"%s %q is blocked: it switches the protection off", profile.field, profile.value)
		case hasControl(profile.value):
			found.add(profile.field, "Write the path or the name of a profile.",
				"%s %q contains a control character", profile.field, profile.value)
		}
	}
	return found
}

var (
	userName  = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_.-]{0,31}\$?$`)
	userForms = "Write a name, a uid, or uid:gid, for example 1000:1000."
)

// maxID is the greatest user or group id; the one above means "no change".
const maxID = 1<<32 - 2

func checkUser(docker config.Docker, _ Host) (found findings) {
	if docker.User == "" {
		return nil
	}
	user, group, hasGroup := strings.Cut(docker.User, ":")
	if !validID(user) || hasGroup && !validID(group) {
		found.add("user", userForms, "user %q is not a user", docker.User)
	}
	return found
}

// NumericUser tells whether a user is given by numbers: uid, or uid:gid.
func NumericUser(user string) bool {
	uid, gid, hasGroup := strings.Cut(user, ":")
	_, err := strconv.ParseUint(uid, 10, 32)
	if err == nil && hasGroup {
		_, err = strconv.ParseUint(gid, 10, 32)
	}
	return err == nil
}

func validID(text string) bool {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n <= maxID
	}
	return userName.MatchString(text)
}

// capabilities are the names that capDrop may list, besides ALL.
var capabilities = strings.Fields(`
	AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE DAC_READ_SEARCH
	FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE MKNOD NET_ADMIN
	NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT
	SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG SYSLOG WAKE_ALARM`)

func checkCapDrop(docker config.Docker, _ Host) (found findings) {
	for i, written := range docker.CapDrop {
		if name := capability(written); name != "ALL" && !slices.Contains(capabilities, name) {
			found.add(fmt.Sprintf("capDrop[%d]", i), "Use ALL, or names such as NET_RAW.", "capability %q does not exist", written)
		}
	}
	return found
}

// capability is the name of a capability without its prefix.
func capability(written string) string {
	return strings.TrimPrefix(strings.ToUpper(written), "CAP_")
}

// ulimitNames are the limits that an engine can set.
var ulimitNames = strings.Fields(
	"as core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack")

func checkUlimits(docker config.Docker, _ Host) (found findings) {
	for _, name := range slices.Sorted(maps.Keys(docker.Ulimits)) {
		field := "ulimits." + name
		if !slices.Contains(ulimitNames, name) {
			found.add(field, "Known are "+strings.Join(ulimitNames, ", ")+".", "ulimit %q does not exist", name)
			continue
		}
		if _, _, err := docker.Ulimits[name].Values(); err != nil {
			found.add(field, "Write a number, \"soft:hard\", or an object with soft and hard; -1 is unlimited.", "ulimit %s: %v", name, err)
		}
	}
	return found
}
