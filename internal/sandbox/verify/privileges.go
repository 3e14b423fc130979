package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/wire/findings"
)

func checkUser(e *Evidence) []Check {
	found := fmt.Sprintf("%d:%d", e.Inside.Self.UID, e.Inside.Self.GID)
	promised := e.Spec.User
	if promised == "" || strings.Trim(promised, "0123456789:") != "" {
		return []Check{note("user", "user and group", "the image's own", found)}
	}
	if !strings.Contains(promised, ":") {
		found = strconv.Itoa(e.Inside.Self.UID)
	}
	return []Check{compare("user", "user and group", found == promised, promised, found)}
}

func checkPrivileges(e *Evidence) []Check {
	const ring = "privileges"
	self := e.Inside.Self
	checks := []Check{
		checkCapabilities(ring, "capabilities", e.Spec.CapDrop, self.Capabilities),
		compare(ring, "no new privileges", self.NoNewPrivs, "set", yesNo(self.NoNewPrivs, "set", "not set")),
		compare(ring, "open descriptors", len(self.Descriptors) == 0, "none but input and output", listed(self.Descriptors)),
	}
	if e.Outside.PID == 0 {
		return checks
	}
	return append(checks, checkOutside(ring, e)...)
}

// checkOutside asks the host's kernel for the same of process 1, whatever is
// said inside.
func checkOutside(ring string, e *Evidence) []Check {
	seen := e.Outside.Privileges
	confined := seen.NoNewPrivs && seen.Seccomp == filtered
	return []Check{
		checkCapabilities(ring, "capabilities, seen from outside", e.Spec.CapDrop, seen.Capabilities),
		compare(ring, "confined, seen from outside", confined, "filter and no new privileges", yesNo(confined, "filter and no new privileges", "not both")),
	}
}

func yesNo(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// listed shows the first of a list that comes from inside.
func listed(items []string) string {
	const shown = 6
	if len(items) == 0 {
		return "none"
	}
	var short []string
	for _, item := range items[:min(len(items), shown)] {
		short = append(short, fmt.Sprintf("%.80s", item))
	}
	text := strings.Join(short, ", ")
	if more := len(items) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// checkCapabilities looks at every set of a process: none may hold what was
// dropped.
func checkCapabilities(ring, name string, dropped []string, sets map[string]string) Check {
	mask, promised := droppedMask(dropped)
	var kept []string
	for _, set := range capabilitySets() {
		bits, err := strconv.ParseUint(sets[set], 16, 64)
		if err != nil || bits&mask != 0 {
			kept = append(kept, fmt.Sprintf("%s %.16s", set, sets[set]))
		}
	}
	return compare(ring, name, len(kept) == 0, promised, listed(kept))
}

func droppedMask(dropped []string) (mask uint64, promised string) {
	for _, name := range dropped {
		name = strings.TrimPrefix(strings.ToUpper(name), "CAP_")
		if name == "ALL" {
			return ^uint64(0), "none"
		}
		if bit := slices.Index(capabilities, name); bit >= 0 {
			mask |= 1 << bit
		}
	}
	return mask, "none of " + listed(dropped)
}

// capabilities in the order of the kernel's numbers.
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
	NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN
	SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG
	WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`)

// allowedCalls are tried beside the refused ones, to see that a refusal means
// something.
var allowedCalls = []string{"getpid", "socket unix"}

// refusals are how a filter answers, and how a kernel that has no such thing.
var refusals = []string{"EPERM", "EACCES", "ENOSYS", "EAFNOSUPPORT"}

func checkCalls(e *Evidence) []Check {
	const ring = "system calls"
	isOn := e.Inside.Self.Seccomp == filtered
	filter := compare(ring, "filter", isOn, "on", yesNo(isOn, "on", "off"))
	if e.Spec.SeccompProfile != "" {
		return []Check{filter, checkModes(ring, e), note(ring, "refused calls", "as "+e.Spec.SeccompProfile+" says", "not compared")}
	}
	var open, broken []string
	refused, opened := 0, openedCalls(e)
	least := minRefused - len(opened)
	for _, call := range e.Inside.Calls {
		switch {
		case slices.Contains(allowedCalls, call.Name):
			if call.Error != "" {
				broken = append(broken, call.Name+" "+call.Error)
			}
		case slices.Contains(opened, call.Name): // for Chromium
		case slices.Contains(refusals, call.Error):
			refused++
		default:
			open = append(open, call.Name+" "+orWorked(call))
		}
	}
	return []Check{filter, checkModes(ring, e),
		compare(ring, "refused calls", len(open) == 0 && refused >= least, fmt.Sprintf("all of %d", least),
			yesNo(len(open) == 0, fmt.Sprintf("all of %d", refused), "let through: "+listed(open))),
		compare(ring, "usual calls", len(broken) == 0, "work", yesNo(len(broken) == 0, "work", "refused: "+listed(broken)))}
}

// checkModes looks for a call that makes a set-user-ID or set-group-ID file.
// Where the sandbox can write to the host, a filter refuses all of them.
func checkModes(ring string, e *Evidence) Check {
	const name, promised = "set-user-ID and set-group-ID", "refused"
	var open []string
	for _, call := range e.Inside.Modes {
		if call.Error != "EPERM" && call.Error != "ENOSYS" {
			open = append(open, call.Name+" "+orWorked(call))
		}
	}
	found := yesNo(len(open) == 0, fmt.Sprintf("%d refused", len(e.Inside.Modes)), "let through: "+listed(open))
	if !e.Spec.WritesShared() {
		return note(ring, name, "as the kernel decides: no directory of the host is writable", found)
	}
	return compare(ring, name, len(open) == 0 && len(e.Inside.Modes) >= minModes, promised, found)
}

// filtered is the kernel's word for a process with a filter of system calls.
const filtered = 2

// These many calls, files of the machine and ways to get at the guest a probe
// tries at least: a list with something missing proves nothing.
const (
	minRefused = 45
	minPaths   = 54
	minGuest   = 8
	minModes   = 8
)

func orWorked(a findings.Attempt) string {
	if a.Error == "" {
		return "works"
	}
	return a.Error
}
