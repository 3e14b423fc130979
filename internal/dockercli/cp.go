package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/atoll-run/atoll/internal/advice"
	"github.com/atoll-run/atoll/internal/machine"
)

func (c *cli) cpVerb() *verb {
	return &verb{usage: " [OPTIONS] CONTAINER:SRC_PATH DEST_PATH|-\n\tdocker cp [OPTIONS] SRC_PATH|- CONTAINER:DEST_PATH", least: 2, most: 2,
		flags: func(f *flagSet) {
			f.truth(new(bool), "quiet", "q")
			f.refuse("owners do not travel: files belong to whoever receives them", "archive,a!")
			f.refuse("links are never followed", "follow-link,L!")
		},
		run: func(ctx context.Context, args []string) error { return c.cp(ctx, args[0], args[1]) }}
}

// cp copies files through the wire of a running container.
func (c *cli) cp(ctx context.Context, from, to string) error {
	source, inside, isFrom := splitPlace(from)
	target, outside, isTo := splitPlace(to)
	switch {
	case isFrom == isTo && isFrom:
		return localError("copying between containers is not supported")
	case isFrom == isTo:
		return localError("must specify at least one container source")
	case isTo:
		source, inside = target, outside
	}
	x, err := c.shelf.find(source)
	if err != nil {
		return err
	}
	job := &Copy{Inside: path.Join("/", inside), Host: to, Out: isFrom, In: c.In, To: c.Out}
	if isTo {
		job.Host = from
	}
	if strings.HasSuffix(inside, "/") || strings.HasSuffix(inside, "/.") {
		job.Inside = "/" + strings.TrimPrefix(inside, "/") // what it ends with has a meaning
	}
	if err := job.checkHost(); err != nil {
		return err
	}
	m, release, err := c.enterRunning(ctx, x, source)
	if err != nil {
		return advice.With(err, "files are copied over the wire of a running container: docker start it first")
	}
	defer release()
	files, err := m.Files(x.roots())
	if err != nil {
		return err
	}
	if missing, err := job.checkInside(ctx, files, inside); err != nil {
		return err
	} else if missing != "" {
		return fmt.Errorf("Could not find the file %s in container %s", missing, source) //nolint:staticcheck // docker's words
	}
	skipped, err := c.boxes.Copy(ctx, files, job)
	for _, name := range skipped {
		fmt.Fprintln(c.Err, "not copied: "+name)
	}
	return err
}

// checkHost says in docker's words what is wrong with the place on the host.
func (c *Copy) checkHost() error {
	if c.Host == "-" {
		return nil
	}
	if !c.Out {
		if _, err := os.Lstat(c.Host); err != nil {
			return localError(err.Error())
		}
		return nil
	}
	if dir := filepath.Dir(filepath.Clean(c.Host)); !isDir(dir) {
		return localError(fmt.Sprintf("invalid output path: directory %q does not exist", dir))
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// roots are the places that files of a container are reached in.
func (c *Container) roots() []machine.Root {
	roots := []machine.Root{{Path: "/", ReadOnly: c.ReadOnly}}
	for target := range c.Tmpfs {
		roots = append(roots, machine.Root{Path: target})
	}
	for _, mount := range c.Mounts {
		roots = append(roots, machine.Root{Path: mount.Target, ReadOnly: mount.ReadOnly})
	}
	return roots
}

// checkInside returns what is missing in the container: directories are not made
// on the way to a copy. written is the place as it was asked for.
func (c *Copy) checkInside(ctx context.Context, files *machine.Files, written string) (missing string, err error) {
	at, missing := path.Clean(c.Inside), written
	if !c.Out {
		at = path.Dir(at)
		missing = at
	}
	there, err := files.Stat(ctx, at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return missing, nil
	case err == nil && c.Out && there.Kind == machine.KindDir && isFile(c.Host):
		return "", localError("cannot copy directory")
	}
	return "", nil // whatever else is wrong, the copy itself says
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// splitPlace reads "container:path".
func splitPlace(text string) (container, inside string, ok bool) {
	if text == "-" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") {
		return "", text, false
	}
	container, inside, ok = strings.Cut(text, ":")
	if !ok {
		return "", text, false
	}
	return container, inside, true
}
