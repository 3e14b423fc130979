package hostpath

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// SetIDBelow returns set-user-ID and set-group-ID programs below a directory that
// a user may write to. A program that is changed through a mapping of its content
// keeps those bits: whoever changes it lends its owner's rights to other code. A
// user who is not known, -1, may write to everything.
func (Disk) SetIDBelow(dir string, uid, gid int) (found []string, complete bool) {
	complete = walkBelow(dir, func(path string, entry os.DirEntry) {
		var st unix.Stat_t
		if !entry.Type().IsRegular() || unix.Lstat(path, &st) != nil || st.Mode&(unix.S_ISUID|unix.S_ISGID) == 0 {
			return
		}
		var facts Facts
		facts.fill(&st)
		if uid < 0 || facts.WritableBy(uint32(uid), uint32(gid)) {
			found = append(found, path)
		}
	})
	slices.Sort(found)
	return found[:min(len(found), maxNamed)], complete
}
