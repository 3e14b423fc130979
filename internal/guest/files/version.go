package files

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/guest/buffer"
	"github.com/atoll-run/atoll/internal/wire"
)

const (
	// timestampGrain is longer than the kernel's clock for timestamps takes to advance.
	// Two changes within it may carry the same time, so that the times of a file that
	// changed more recently do not tell whether it changed again.
	timestampGrain = 50 * time.Millisecond
	// maxHashed is the largest file whose content is hashed into its version while its
	// last change is that recent.
	maxHashed = 1 << 20
)

// version returns an opaque string that changes with the content of an open file.
func (g *Server) version(fd int, f *fileInfo) string {
	version := f.version()
	if f.recent() && f.size <= maxHashed {
		if hash, err := g.hash(fd, f.size); err == nil {
			version += hashMark + hash
		}
	}
	return version
}

// versionAt is version for a file that is not open. If it cannot be read its version
// has no hash.
func (g *Server) versionAt(s *location, f *fileInfo) string {
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

// unchanged reports whether the file at s still has a version that was reported before.
func (g *Server) unchanged(s *location, now *fileInfo, version string) bool {
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

// hash hashes the content with a random seed of this guest. It is no protection
// against collisions that are made on purpose.
func (g *Server) hash(fd int, size int64) (string, error) {
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

// requireVersion refuses a file that does not have this version. The empty version
// matches every file.
func (g *Server) requireVersion(s *location, now *fileInfo, version string) error {
	if version == "" || now != nil && g.unchanged(s, now, version) {
		return nil
	}
	return refuse(wire.CodeChanged)
}
