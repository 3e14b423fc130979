package docker

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// account is a numeric user of the sandbox. A gid of -1 was not given.
type account struct{ uid, gid int }

// parseAccount reads "uid" or "uid:gid". Names are only known inside the image.
func parseAccount(user string) (account, bool) {
	u, g, hasGroup := strings.Cut(user, ":")
	uid, err := strconv.ParseUint(u, 10, 31)
	if err != nil {
		return account{}, false
	}
	if !hasGroup {
		return account{int(uid), -1}, true
	}
	gid, err := strconv.ParseUint(g, 10, 31)
	if err != nil {
		return account{}, false
	}
	return account{int(uid), int(gid)}, true
}

// reachable returns an error if this process may not open the guest's socket, which
// only its owner can. Root may always. Without root it must be our own user: a rootless
// engine maps that to uid 0, unless it is asked to keep the number (userNamespace).
func reachable(flavor Flavor, known *facts, user string) error {
	ours := os.Geteuid()
	rootless := known.secured("rootless")
	if ours == 0 || rootless && flavor == Podman {
		return nil
	}
	if rootless {
		ours = 0
	}
	if owner, ok := parseAccount(user); ok && owner.uid == ours {
		return nil
	}
	return errhint.With(fmt.Errorf("user %q: without root, only a sandbox of one's own user can be reached: %w", user, sandbox.ErrUnsupported),
		fmt.Sprintf("set docker.user to %d:%d, or run as root", ours, os.Getegid()))
}
