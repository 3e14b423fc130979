package sandbox

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// refuseSetID refuses a spec that lets code inside change a set-user-ID or
// set-group-ID program of the host. Where a directory holds more than can be
// looked at, the rest is not.
func refuseSetID(spec *Spec) error {
	for _, m := range spec.Mounts {
		if m.ReadOnly {
			continue
		}
		uid, gid := spec.UserNumbers()
		if found, _ := (hostpath.Disk{}).SetIDBelow(m.Source, uid, gid); len(found) > 0 {
			return errhint.With(fmt.Errorf("mount %s: %s is set-user-ID or set-group-ID, and could be changed from inside: %w", m.Target, found[0], ErrDenied),
				"`chmod ug-s` it, or mount the directory read-only")
		}
	}
	return nil
}

// UserNumbers returns the user and group that the sandbox runs as; -1 where only
// its image knows them.
func (s *Spec) UserNumbers() (uid, gid int) {
	user, group, _ := strings.Cut(s.User, ":")
	uid, err := strconv.Atoi(user)
	if err != nil {
		return -1, -1
	}
	if gid, err = strconv.Atoi(group); err != nil {
		gid = -1
	}
	return uid, gid
}
