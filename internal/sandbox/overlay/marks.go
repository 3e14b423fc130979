package overlay

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxMark is longer than any mark of the kernel.
const maxMark = unix.PathMax + 1

// dirMarks are the marks of a directory in an upper.
type dirMarks struct {
	opaque   bool
	redirect string // path in the base, "" if none
}

// errMark means that a directory or file has a mark that the mount cannot have
// made. What it stands for is not guessed.
var errMark = errors.New("it has a mark of the kernel's overlay that this mount does not make")

// isWhiteout reports whether an entry of an upper says that the base's is deleted.
func isWhiteout(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0
}

// readMarks reads the marks of an open directory whose parent lies over the
// directory lower of the base; hasLower is false if it lies over none.
func (m Marks) readMarks(dir *os.File, lower string, hasLower bool) (dirMarks, error) {
	var found dirMarks
	opaque, ok, err := m.get(dir, "opaque")
	if err != nil || ok && opaque != "y" {
		return found, errors.Join(err, errMark)
	}
	found.opaque = ok
	redirect, ok, err := m.get(dir, "redirect")
	if err != nil || !ok {
		return found, err
	}
	if m != MarksTrusted {
		return found, errMark // with userxattr the kernel neither makes nor follows it
	}
	found.redirect, err = redirectPath(redirect, lower, hasLower)
	return found, err
}

// get reads one mark of an open directory.
func (m Marks) get(dir *os.File, name string) (string, bool, error) {
	value := make([]byte, maxMark)
	n, err := unix.Fgetxattr(int(dir.Fd()), string(m)+".overlay."+name, value)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		return "", false, nil
	} else if err != nil {
		return "", false, fmt.Errorf("mark %s: %w", name, err)
	}
	return string(value[:n]), true, nil
}

// redirectPath returns the directory of the base that the value of a redirect
// mark names: "/a/b" from the top, "b" beside the one that the parent lies over.
// "" if there is none, because the parent lies over nothing.
func redirectPath(value, lower string, hasLower bool) (string, error) {
	absolute := strings.HasPrefix(value, "/")
	name := strings.TrimPrefix(value, "/")
	if !isPath(name) || !absolute && strings.Contains(name, "/") {
		return "", errMark
	}
	switch {
	case absolute:
		return name, nil
	case hasLower:
		return path.Join(lower, name), nil
	}
	return "", nil
}

// isPath reports whether a path of any bytes names something below a directory,
// in one way only.
func isPath(rel string) bool {
	if len(rel) > MaxPath || strings.ContainsRune(rel, 0) {
		return false
	}
	for part := range strings.SplitSeq(rel, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// checkFile refuses a file whose content is not its own: one that is a mark of
// metadata only, or a whiteout of the newer form.
func (m Marks) checkFile(dir *os.File, name string) error {
	at := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	for _, mark := range []string{"metacopy", "whiteout"} {
		_, err := unix.Lgetxattr(at, string(m)+".overlay."+mark, nil)
		if err == nil {
			return errMark
		}
		if !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("mark %s: %w", mark, err)
		}
	}
	return nil
}
