package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/hostpath"
)

// named is a program or path of the host that a file names, as it was when the
// file was trusted.
type named struct {
	Place string `json:"place"` // the key that names it
	Name  string `json:"name"`  // as written
	// Real is the path without links, relative if it is in the project.
	Real string `json:"real"`
	// Hash is of the content, of what decides what is executed.
	Hash string `json:"sha256,omitempty"`
}

// OfHost reports whether it is something that is there, and not only a word of a
// command.
func (n *named) OfHost() bool {
	return n.Hash != "" || filepath.IsAbs(n.Real) || !strings.HasSuffix(n.Place, ".command")
}

// maxNamed is the largest program or script whose content is remembered, in bytes.
const maxNamed = 64 << 20

// namedBy returns what a configuration names of the host, as it is now.
func namedBy(cfg *config.Config, at repository, dir string) (all []named, err error) {
	for _, n := range cfg.Named() {
		if n.Path != "" {
			one, problem := inspect(n.Place, n.Path, at, n.Content)
			all, err = append(all, one), errors.Join(err, problem)
		}
		for i, argument := range n.Command {
			path := argument
			switch {
			case i == 0 && !strings.Contains(argument, "/"):
				path, _ = exec.LookPath(argument)
			case !filepath.IsAbs(argument):
				path = filepath.Join(dir, argument)
			}
			one, problem := inspect(n.Place, path, at, true)
			one.Name = argument
			all, err = append(all, one), errors.Join(err, problem)
		}
	}
	return all, err
}

// inspect examines one path. Its content is hashed if it decides what is executed and
// a user other than root can change it, or if it is in the project.
func inspect(place, path string, at repository, executed bool) (named, error) {
	n := named{Place: place, Name: path}
	if path == "" || len(path) >= unix.PathMax || strings.ContainsRune(path, 0) {
		return n, nil // not a path
	}
	facts, err := hostpath.Identify(path)
	if errors.Is(err, unix.ENAMETOOLONG) {
		return n, nil // not a path either
	} else if err != nil {
		return n, fmt.Errorf("%s: %w", place, err)
	}
	n.Real = facts.Canonical
	rel, inside := within(at.root, facts.Canonical)
	if inside {
		n.Real = rel
	}
	switch {
	case !executed || !facts.Exists:
	case inside && facts.Kind == hostpath.KindDirectory && rel != ".":
		return n, fmt.Errorf("%s: %s is a directory of the project, whose content cannot be remembered", place, path)
	case facts.Kind == hostpath.KindFile && (inside || facts.UID != 0):
		n.Hash, err = hashFile(facts.Canonical)
	}
	return n, err
}

func hashFile(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrPermission) {
		return "", nil // it can be executed and not read
	} else if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(f, maxNamed+1)); err != nil || n > maxNamed {
		return "", errors.Join(err, fmt.Errorf("%s: more than %d bytes cannot be remembered", path, maxNamed))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
