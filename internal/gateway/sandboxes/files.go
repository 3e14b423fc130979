package sandboxes

import (
	"path"
	"strings"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/wire"
)

// MaxFile bounds the bytes of one file that is written.
const MaxFile = 8 << 30

// Files are the files of a sandbox, as far as its own commands reach.
func (i *Inside) Files() (*guestfs.Files, error) {
	roots := make([]guestfs.Root, len(i.Details.Roots))
	for n, r := range i.Details.Roots {
		roots[n] = guestfs.Root{Path: r.Path, ReadOnly: r.ReadOnly}
	}
	return guestfs.New(i.Machine, roots)
}

// InfoOf describes a file.
func InfoOf(f *guestfs.FileInfo) *api.FileInfo {
	return &api.FileInfo{
		Path: f.Path, Kind: string(f.Kind), Size: f.Size, Mode: int(f.Mode.Perm()), Modified: f.ModTime.UTC(), UID: f.UID, GID: f.GID, Target: f.Target,
	}
}

// Changes returns the changes in a watched directory, without those of files that the
// guest makes in passing.
func Changes(dir string, events []guestfs.FileEvent) (list []api.FileChange) {
	for _, e := range events {
		if !strings.HasPrefix(path.Base(e.Path), wire.TemporaryPrefix) {
			list = append(list, api.FileChange{Path: path.Join(dir, e.Path), What: string(e.What), Dir: e.Dir})
		}
	}
	return list
}
