package guest

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
	"golang.org/x/sys/unix"
)

const (
	// timestampGrain is how long after a change the kernel's clock has certainly moved
	// on. Two changes sooner after each other may carry the same time, so that
	// the times of a younger file do not tell whether it changed.
	timestampGrain = 50 * time.Millisecond
	// maxHashed is the largest file whose content is part of its version while
	// it is that young.
	maxHashed = 1 << 20
)

// version stands for the state of an open file.
func (g *fileServer) version(fd int, f *fileInfo) string {
	version := f.version()
	if f.recent() && f.size <= maxHashed {
		if hash, err := g.hash(fd, f.size); err == nil {
			version += hashMark + hash
		}
	}
	return version
}

// versionAt is version for a file that is not open. One that cannot be read has
// no content in its version.
func (g *fileServer) versionAt(s *location, f *fileInfo) string {
	if !f.recent() || f.nlink > 1 || f.mount {
		return f.version()
	}
	fd, opened, err := s.openRegular()
	if err != nil {
		return f.version()
	}
	defer unix.Close(fd)
	return g.version(fd, opened)
}

// hashMark separates the two parts of a version.
const hashMark = "+"

// unchanged reports whether what is at s is still in a version that was told
// before.
func (g *fileServer) unchanged(s *location, now *fileInfo, version string) bool {
	times, hash, hashed := strings.Cut(version, hashMark)
	if now.version() != times || now.refuseIrregular() != nil {
		return false
	}
	if !hashed {
		return true
	}
	fd, opened, err := s.openRegular()
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	content, err := g.hash(fd, opened.size)
	return err == nil && content == hash
}

func (f *fileInfo) version() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", f.device, f.inode, f.size, f.mtime, f.ctime)
}

func (f *fileInfo) recent() bool {
	age := time.Since(time.Unix(0, max(f.mtime, f.ctime)))
	return age < timestampGrain
}

// hash is of the content, with a key of this guest's: it need not resist those
// who make both files.
func (g *fileServer) hash(fd int, size int64) (string, error) {
	var hash maphash.Hash
	hash.SetSeed(g.seed)
	c := buffer.Get()
	defer buffer.Put(c)
	for offset := int64(0); offset < size; {
		n, err := pread(fd, c[:], offset)
		if err != nil {
			return "", err
		}
		if n == 0 {
			break
		}
		_, _ = hash.Write(c[:n])
		offset += int64(n)
	}
	return fmt.Sprintf("%x", hash.Sum64()), nil
}

// requireVersion refuses a file that is not in the version expected of it. A
// version "" expects nothing.
func (g *fileServer) requireVersion(s *location, now *fileInfo, version string) error {
	if version == "" || now != nil && g.unchanged(s, now, version) {
		return nil
	}
	return refuse(wire.CodeChanged)
}
