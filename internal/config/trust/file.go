package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/hostpath"
)

// FileName is the file that is looked for in a project.
const FileName = "atoll.json5"

// MaxSize is the largest file of a project that is read, in bytes.
const MaxSize = 1 << 20

// file is a project's file, read once.
type file struct {
	path    string // without symbolic links
	content []byte
	hash    string // SHA-256 of content, in hex
}

// ErrRefused is what every reason is for which a project's file cannot be trusted.
var ErrRefused = errors.New("refused")

// refusal is such a reason.
type refusal struct{ error }

func (refusal) Is(target error) bool { return target == ErrRefused }

func (r refusal) Unwrap() error { return r.error }

// read reads the project's file in dir through one descriptor, which the checks
// are made on. It returns nil if there is no such file. An error that wraps
// ErrRefused says why the file that is there does not count.
func read(dir string, forbidden []string) (*file, error) {
	root, err := hostpath.OpenDir(dir)
	if err != nil {
		return nil, nil //nolint:nilerr // nothing can be found in a directory that cannot be opened
	}
	defer root.Close() //nolint:errcheck // it was only read
	f, err := hostpath.OpenRegularBeneath(root, FileName, MaxSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, refused(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	place, err := hostpath.Identify(dir)
	if err != nil {
		return nil, refused(err)
	}
	if err := errors.Join(checkOwner(f), checkPlace(place.Canonical, forbidden)); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil || len(content) > MaxSize {
		return nil, refused(errors.Join(err, fmt.Errorf("it is larger than %d bytes", MaxSize)))
	}
	return &file{filepath.Join(place.Canonical, FileName), content, hashOf(content)}, nil
}

func refused(err error) error { return refusal{err} }

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// checkOwner refuses a file that a user other than this one and root can write.
func checkOwner(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return refused(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() && owner != 0 {
		return refused(fmt.Errorf("it belongs to user %d", owner))
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return refused(fmt.Errorf("mode %04o lets other users write it (chmod go-w)", mode))
	}
	return nil
}

// checkPlace refuses a file below a directory that belongs to sandboxes.
func checkPlace(dir string, forbidden []string) error {
	for _, place := range forbidden {
		at, err := hostpath.Identify(place)
		if err != nil {
			return refused(err)
		}
		if rel, err := filepath.Rel(at.Canonical, dir); err == nil && filepath.IsLocal(rel) {
			return refused(fmt.Errorf("it is in %s, where sandboxes write", place))
		}
	}
	return nil
}

// within returns path relative to root, if it is below it.
func within(root, path string) (string, bool) {
	rel, err := filepath.Rel(root, path)
	return rel, err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
