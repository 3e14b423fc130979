package linux

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// account is a user id and a group id.
type account struct{ uid, gid int }

// userOf returns the user of the sandbox, as seen inside: that of the spec, or the
// caller.
func userOf(user string) (account, error) {
	if user == "" {
		return account{os.Geteuid(), os.Getegid()}, nil
	}
	u, g, hasGroup := strings.Cut(user, ":")
	uid, err := strconv.ParseUint(u, 10, 31)
	if err != nil {
		return account{}, notANumber(user)
	}
	if !hasGroup {
		return account{int(uid), int(uid)}, nil
	}
	gid, err := strconv.ParseUint(g, 10, 31)
	if err != nil {
		return account{}, notANumber(user)
	}
	return account{int(uid), int(gid)}, nil
}

func notANumber(user string) error {
	return errhint.With(fmt.Errorf("user %q: only numbers are known here: %w", user, sandbox.ErrUnsupported),
		fmt.Sprintf("set docker.user to numbers, such as %d:%d", os.Getuid(), os.Getgid()))
}

// outside returns the ids of the user on the host: the same if Atoll runs as root,
// which may map any user, otherwise those of the caller.
func (a account) outside() account {
	if privileged() {
		return a
	}
	return account{os.Geteuid(), os.Getegid()}
}

// writeIDMaps writes the uid and gid maps of a process's user namespace. Only the
// sandbox's user is mapped; if root makes a sandbox of another user, root is mapped
// too, so that files of images belong to root, while no process can become root.
func (a account) writeIDMaps(pid int) error {
	outside := a.outside()
	groups := "deny"
	if privileged() {
		groups = "allow"
	}
	for _, file := range []struct{ name, text string }{
		{"uid_map", mapping(a.uid, outside.uid)},
		{"setgroups", groups}, // before the next: others than root may not write that else
		{"gid_map", mapping(a.gid, outside.gid)},
	} {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, file.name), []byte(file.text), 0); err != nil {
			return err
		}
	}
	return nil
}

func mapping(inside, outside int) string {
	text := fmt.Sprintf("%d %d 1\n", inside, outside)
	if privileged() && inside != 0 {
		text += "0 0 1\n"
	}
	return text
}

// ambient returns the capabilities that the user must be given; root has all.
func (a account) ambient() []uintptr {
	if privileged() {
		return nil
	}
	return allCapabilities()
}

// allCapabilities returns the capabilities that making a sandbox takes. They hold in
// the new user namespace only, and are all dropped before the guest is executed.
func allCapabilities() []uintptr {
	const (
		chown, dacOverride, fowner, setgid, setuid, setpcap = 0, 1, 3, 6, 7, 8
		netAdmin, sysChroot, sysAdmin, sysResource, mknod   = 12, 18, 21, 24, 27
	)
	return []uintptr{chown, dacOverride, fowner, setgid, setuid, setpcap, netAdmin, sysChroot, sysAdmin, sysResource, mknod}
}
