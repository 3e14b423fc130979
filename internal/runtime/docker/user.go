package docker

import (
	"strconv"
	"strings"
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
