// Package quota measures what a sandbox keeps on the host's disk: directories
// of the host that it may write to. A quota of the file system would do better,
// but takes root and a file system that was made for it; a measure can be taken
// everywhere, also by an ordinary user.
//
// What is counted are names, and files without a name that processes hold open
// and let us see. It is the guest that measures, and it ends with the sandbox:
// nobody has to stay outside for it.
package quota

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/wire"
)

// Limits is what directories may hold together. Zero is no limit.
type Limits struct {
	Dirs    []string
	Size    int64 // bytes
	Files   int64 // files, directories and links
	Reserve int64 // bytes that must stay free on their disks
}

// None reports whether nothing is limited.
func (r *Limits) None() bool {
	return len(r.Dirs) == 0 || r.Size == 0 && r.Files == 0 && r.Reserve == 0
}

// Usage is what was found.
type Usage struct {
	Bytes, Files int64
	Free         int64 // on the fullest of the disks
	Endless      bool  // more than can be counted
	Partial      bool  // counting stopped, far beyond a limit
}

// Exceeded names the limit that is exceeded, if one is.
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

// Grew reports whether there is more than there was: less free counts too, if
// that is what is short.
func (u *Usage) Grew(before *Usage) bool {
	return u.Endless || u.Bytes > before.Bytes || u.Files > before.Files
}

// Disks is what the file systems say of themselves. It changes when anybody
// writes to one.
type Disks struct {
	Free int64 // bytes on the fullest, for everybody
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

// Near reports whether directories that held u when their disks were as before
// can be over a limit by now, or half way there: they grow only by what is taken
// from the disks. That holds unless somebody else gives back meanwhile, so it is
// a reason to measure, and no reason never to.
func (r *Limits) Near(u *Usage, before, now Disks) bool {
	bytes, files := now.taken(before)
	return r.Reserve > 0 && now.Free < r.Reserve ||
		r.Size > 0 && 2*bytes >= r.Size-u.Bytes || r.Files > 0 && 2*files >= r.Files-u.Files
}

// fileCost is as many bytes as could be written while a file is made.
const fileCost = 8 << 10

// Left returns how many bytes can be written at least until a limit is reached,
// counting a new file as some.
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

// maxDirs is how many directories a ration is of.
const maxDirs = 4

// Disks asks them, which costs nothing beside a measure.
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
