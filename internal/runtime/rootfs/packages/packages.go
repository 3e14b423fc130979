// Package packages makes a root directory, as a tar, of packages that are installed
// on this machine: the essential ones, a few that agents use, and what those need.
//
// Only files that a package brought are in it, and only those that everybody on the
// machine may read: nothing of /usr/local, /etc or /opt, and nothing that was put
// beside the packages by hand. It reads the database of dpkg; other package
// managers are not supported.
package packages

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrNone means that this machine has no database of packages that can be read.
var ErrNone = errors.New("this machine has no package database of dpkg")

// wanted are packages that are taken if they are installed, beside the essential
// ones.
var wanted = []string{"ca-certificates", "curl", "file", "git", "jq", "less", "make", "patch", "procps", "python3", "ripgrep", "unzip", "xz-utils", "zip"}

// Available returns ErrNone if no root can be made below a root directory, "/" for
// this machine.
func Available(root string) error {
	if _, err := os.Stat(filepath.Join(root, statusFile)); err != nil {
		return errhint.With(fmt.Errorf("%w: %s", ErrNone, statusFile), "atoll images pull IMAGE, then set sandbox.docker.image to it")
	}
	return nil
}

// Write writes the tar of a root directory. Times are zero, so that the same packages
// make the same image.
func Write(ctx context.Context, w io.Writer, root string) error {
	if err := Available(root); err != nil {
		return err
	}
	installed, err := readStatus(filepath.Join(root, statusFile))
	if err != nil {
		return err
	}
	t := &tree{root: root, tar: tar.NewWriter(w), names: map[string]bool{}, dirs: map[string]string{}}
	if err := t.base(); err != nil {
		return err
	}
	for _, name := range closure(installed, wanted) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.addPackage(installed[name]); err != nil {
			return fmt.Errorf("package %s: %w", name, err)
		}
	}
	if err := t.addAlternatives(); err != nil {
		return err
	}
	return t.tar.Close()
}

// closure returns the names of the essential and the wanted packages and of all that
// they need, in order.
func closure(installed map[string]*entry, wanted []string) []string {
	taken := map[string]bool{}
	var take func(name string)
	take = func(name string) {
		p := installed[name]
		if p == nil || taken[p.name] {
			return
		}
		taken[p.name] = true
		for _, other := range p.needs {
			take(other)
		}
	}
	for name, p := range installed {
		if p.essential && name == p.name {
			take(name)
		}
	}
	for _, name := range wanted {
		take(name)
	}
	names := make([]string, 0, len(taken))
	for name := range taken {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// epoch is the time of every file.
var epoch = time.Unix(0, 0)
