package hostpath

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
)

const (
	// maxLinks is how many symbolic links one path may pass; the kernel's limit.
	maxLinks = 40
	// maxAttempts is how often a path that changed under our eyes is examined anew.
	maxAttempts = 16
)

// Identify examines an absolute path. A path that does not exist is no error:
// its Canonical form says where it would come to be, also when it hangs below
// a link or is itself a link to something missing.
func Identify(path string) (Facts, error) {
	if !filepath.IsAbs(path) {
		return Facts{}, errhint.With(fmt.Errorf("%q: not an absolute path", path), "Write the path from /.")
	}
	if strings.ContainsRune(path, 0) {
		return Facts{}, fmt.Errorf("%q: contains a NUL byte", path)
	}
	for range maxAttempts {
		facts, err := identifyOnce(path)
		if !errors.Is(err, errRace) {
			return facts, err
		}
	}
	return Facts{}, refuse(path, ErrChanged)
}

// errRace means that the names seen on the way no longer lead to what was found.
var errRace = errors.New("changed during the walk")

func identifyOnce(path string) (Facts, error) {
	w, err := newWalk()
	if err != nil {
		return Facts{}, err
	}
	defer w.close()
	if err := w.follow(path); err != nil {
		return Facts{}, refuse(path, err)
	}
	facts := Facts{Path: path, Canonical: w.canonical()}
	if len(w.missing) > 0 {
		return facts, w.confirm()
	}
	if err := facts.stat(w.fd()); err != nil {
		return Facts{}, refuse(path, err)
	}
	return facts, w.confirm()
}

// walk resolves a path one component at a time, holding each directory on the
// way open, so that no step can be exchanged for another behind its back.
type walk struct {
	fds     []int    // of the root and of every name in names
	names   []string // components that exist, none of them a link
	missing []string // components below them that do not
	links   int
}

func newWalk() (*walk, error) {
	root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("/: %w", err)
	}
	return &walk{fds: []int{root}}, nil
}

func (w *walk) fd() int { return w.fds[len(w.fds)-1] }

func (w *walk) canonical() string {
	return "/" + strings.Join(append(append([]string{}, w.names...), w.missing...), "/")
}

func (w *walk) close() { w.unwind(-1) }

// unwind closes every descriptor beyond the first keep names.
func (w *walk) unwind(keep int) {
	for len(w.fds) > keep+1 {
		closeFD(w.fd())
		w.fds = w.fds[:len(w.fds)-1]
	}
	w.names = w.names[:max(keep, 0)]
}

// follow walks path, absolute or relative to where the walk stands.
func (w *walk) follow(path string) error {
	if strings.HasPrefix(path, "/") {
		w.unwind(0)
		w.missing = nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if err := w.step(name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) step(name string) error {
	switch {
	case name == "" || name == ".":
		return nil
	case name == "..":
		w.up()
		return nil
	case len(w.missing) > 0:
		w.missing = append(w.missing, name)
		return nil
	}
	return w.down(name)
}

// up goes to the parent. Because no name in names is a link, that is the parent
// the kernel would choose too.
func (w *walk) up() {
	switch {
	case len(w.missing) > 0:
		w.missing = w.missing[:len(w.missing)-1]
	case len(w.names) > 0:
		w.unwind(len(w.names) - 1)
	}
}

func (w *walk) down(name string) error {
	fd, err := unix.Openat(w.fd(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ENOENT):
		w.missing = append(w.missing, name)
		return nil
	case err != nil:
		return reasonOf(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		closeFD(fd)
		return err
	}
	if KindOf(st.Mode) == KindSymlink {
		defer closeFD(fd)
		return w.followLink(fd)
	}
	w.fds, w.names = append(w.fds, fd), append(w.names, name)
	return nil
}

func (w *walk) followLink(fd int) error {
	if w.links++; w.links > maxLinks {
		return fmt.Errorf("passes through more than %d symbolic links", maxLinks)
	}
	// The text of a link in /proc is not where the kernel goes when it follows it.
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if fs.Type == unix.PROC_SUPER_MAGIC {
		return ErrMagicLink
	}
	target := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", target)
	if err != nil {
		return err
	}
	return w.follow(string(target[:n]))
}

// confirm checks that the names found still lead to the descriptor held: a
// directory may have been renamed during the walk.
func (w *walk) confirm() error {
	now := Facts{}
	held := Facts{}
	fd, err := openConfined(w.fds[0], strings.Join(append([]string{"."}, w.names...), "/"), open{flags: unix.O_PATH})
	if err != nil {
		return errRace
	}
	defer closeFD(fd)
	if err := errors.Join(now.stat(fd), held.stat(w.fd())); err != nil {
		return err
	}
	if now.ID() != held.ID() || w.appeared() {
		return errRace
	}
	return nil
}

// appeared reports whether the first missing component exists by now.
func (w *walk) appeared() bool {
	if len(w.missing) == 0 {
		return false
	}
	var st unix.Stat_t
	return unix.Fstatat(w.fd(), w.missing[0], &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}
