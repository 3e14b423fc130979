// Package quota measures the directories of the host's disk that a sandbox may write to.
// A quota of the file system would be exact, but needs root and a file system with
// support for it; measuring works everywhere, also for an ordinary user.
//
// It counts files by their names, and files without a name that visible processes hold
// open. The guest measures, so that no process on the host has to run for it.
package quota

import (
	"errors"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// Limits bound what directories hold together. Zero is no limit.
type Limits struct {
	Dirs []string
	// Merged has, for a directory that is the upper one of an overlay, where the
	// overlay is mounted: only there can its files be changed.
	Merged  map[string]string
	Size    int64 // bytes
	Files   int64 // files, directories and links
	Reserve int64 // bytes that must stay free on their disks
}

// AddUpper adds the upper directory of an overlay: DIR=MERGED.
func (r *Limits) AddUpper(text string) {
	dir, merged, _ := strings.Cut(text, "=")
	r.Dirs = append(r.Dirs, dir)
	if r.Merged == nil {
		r.Merged = map[string]string{}
	}
	r.Merged[dir] = merged
}

// None reports whether nothing is limited.
func (r *Limits) None() bool {
	return len(r.Dirs) == 0 || r.Size == 0 && r.Files == 0 && r.Reserve == 0
}

// Usage is a measurement.
type Usage struct {
	Bytes, Files int64
	Free         int64 // on the fullest of the disks
	Endless      bool  // more files than can be counted
	Partial      bool  // counting stopped beyond twice a limit
}

// Exceeded returns the limit that is exceeded, or "".
func (r *Limits) Exceeded(u *Usage) wire.QuotaLimit {
	switch {
	case r.Reserve > 0 && u.Free < r.Reserve:
		return wire.QuotaDisk
	case u.Endless, r.Files > 0 && u.Files > r.Files:
		return wire.QuotaFiles
	case r.Size > 0 && u.Bytes > r.Size:
		return wire.QuotaSize
	}
	return ""
}

// Grew reports whether the directories hold more than before.
func (u *Usage) Grew(before *Usage) bool {
	return u.Endless || u.Bytes > before.Bytes || u.Files > before.Files
}

// Disks is what statfs reports of the file systems.
type Disks struct {
	Free int64 // bytes on the fullest, available to users
	left [maxDirs]struct{ bytes, files int64 }
}

// Less reports whether a file system has less left than before.
func (d Disks) Less(before Disks) bool {
	bytes, files := d.taken(before)
	return bytes > 0 || files > 0
}

// taken returns what was taken from the disks since before.
func (d Disks) taken(before Disks) (bytes, files int64) {
	for n, left := range d.left {
		bytes += max(0, before.left[n].bytes-left.bytes)
		files += max(0, before.left[n].files-left.files)
	}
	return bytes, files
}

// Near reports whether directories that held u when their disks were as before may be
// over a limit by now, or half way there: they grow by no more than the free space
// shrinks. Others may free space meanwhile, so false does not make measuring needless.
func (r *Limits) Near(u *Usage, before, now Disks) bool {
	bytes, files := now.taken(before)
	return r.Reserve > 0 && now.Free < r.Reserve ||
		r.Size > 0 && 2*bytes >= r.Size-u.Bytes || r.Files > 0 && 2*files >= r.Files-u.Files
}

// fileCost is how many bytes could be written in the time that creating a file takes.
const fileCost = 8 << 10

// Left returns how many bytes can at least be written until a limit is reached. A new
// file counts as fileCost.
func (r *Limits) Left(u *Usage, before, now Disks) int64 {
	bytes, files := now.taken(before)
	left := int64(math.MaxInt64)
	if r.Size > 0 {
		left = min(left, r.Size-u.Bytes-bytes)
	}
	if r.Files > 0 {
		left = min(left, min(r.Files-u.Files-files, math.MaxInt32)*fileCost)
	}
	if r.Reserve > 0 {
		left = min(left, now.Free-r.Reserve)
	}
	return max(left, 0)
}

// maxDirs is how many directories Limits can have.
const maxDirs = 4

// Disks returns the free space of the directories' disks. It takes microseconds.
func (r *Limits) Disks() Disks {
	d := Disks{Free: -1}
	for n, dir := range r.Dirs[:min(len(r.Dirs), maxDirs)] {
		var st unix.Statfs_t
		if ignoringEINTR(func() error { return unix.Statfs(dir, &st) }) != nil {
			continue
		}
		d.left[n].bytes, d.left[n].files = int64(st.Bfree)*st.Bsize, int64(st.Ffree)
		if free := int64(st.Bavail) * st.Bsize; d.Free < 0 || free < d.Free {
			d.Free = free
		}
	}
	return d
}

func ignoringEINTR(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
