package linux

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// account is a user, as numbers.
type account struct{ uid, gid int }

// userOf is who runs in the sandbox, as seen inside: the one that was asked
// for, or the caller.
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

// outside is who that user is on the host: himself if root asks, since root may
// let anybody run, and else the caller, whose files he works on.
func (a account) outside() account {
	if privileged() {
		return a
	}
	return account{os.Geteuid(), os.Getegid()}
}

// become tells the kernel who is who across the wall of a process. The user is
// the only one that is known inside, but for root's own sandboxes of other
// users: there root is known too, so that the files of images are his, while
// nobody can become him.
func (a account) become(pid int) error {
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

// ambient are the capabilities that the user must be given; root has all.
func (a account) ambient() []uintptr {
	if privileged() {
		return nil
	}
	return allCapabilities()
}

// allCapabilities are those that building walls takes. They count in the new
// user namespace only, and none is left when the walls stand.
func allCapabilities() []uintptr {
	const (
		chown, dacOverride, fowner, setgid, setuid, setpcap = 0, 1, 3, 6, 7, 8
		netAdmin, sysChroot, sysAdmin, sysResource, mknod   = 12, 18, 21, 24, 27
	)
	return []uintptr{chown, dacOverride, fowner, setgid, setuid, setpcap, netAdmin, sysChroot, sysAdmin, sysResource, mknod}
}
