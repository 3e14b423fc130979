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

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/machine"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
)

func (c *cli) cpVerb() *verb {
	return &verb{usage: " [OPTIONS] CONTAINER:SRC_PATH DEST_PATH|-\n\tdocker cp [OPTIONS] SRC_PATH|- CONTAINER:DEST_PATH", least: 2, most: 2,
		flags: func(f *flagSet) {
			f.boolean(new(bool), "quiet", "q")
			f.refuse(whyNoOwner, "archive,a!")
			f.refuse(whyNoLink, "follow-link,L!")
		},
		run: func(ctx context.Context, args []string) error { return c.cp(ctx, args[0], args[1]) }}
}

// cp copies files through the wire of a running container.
func (c *cli) cp(ctx context.Context, from, to string) error {
	source, inside, isFrom := splitContainerPath(from)
	target, outside, isTo := splitContainerPath(to)
	switch {
	case isFrom == isTo && isFrom:
		return localError("copying between containers is not supported")
	case isFrom == isTo:
		return localError("must specify at least one container source")
	case isTo:
		source, inside = target, outside
	}
	x, err := c.records.find(source)
	switch {
	case err != nil:
		return err
	case inside == "":
		return errhint.With(errors.New("bad parameter: path cannot be empty"), "name the path inside: "+source+":/path")
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
	m, leave, err := c.enterAny(ctx, x, source)
	if err != nil {
		return err
	}
	return errors.Join(c.copy(ctx, m, x, job, containerPath{source, inside}), leave())
}

// containerPath is a path in a container, as written on the command line.
type containerPath struct{ container, path string }

func (c *cli) copy(ctx context.Context, m *machine.Machine, x *Container, job *Copy, asked containerPath) error {
	files, err := guestfs.New(m, x.roots())
	if err != nil {
		return err
	}
	if err := job.checkInside(ctx, files, asked); err != nil {
		return err
	}
	skipped, err := c.containers.Copy(ctx, files, job)
	for _, name := range skipped {
		fmt.Fprintln(c.Err, "not copied: "+name)
	}
	return err
}

// enterAny enters a container to work on its files. The sandbox of one that does
// not run is started for as long as that takes, without its command.
func (c *cli) enterAny(ctx context.Context, x *Container, ref string) (*machine.Machine, func() error, error) {
	s, err := c.currentStatus(ctx, x)
	if errors.Is(err, ErrNoSandbox) {
		return nil, nil, noSuchContainer(ref)
	} else if err != nil {
		return nil, nil, err
	}
	if s == statusRunning || s == statusPaused {
		m, release, err := c.enterRunning(ctx, x, ref)
		return m, func() error { release(); return nil }, err
	}
	unlock, err := c.lock(ctx, x.Name)
	if err != nil {
		return nil, nil, err
	}
	m, release, err := c.startSandbox(ctx, x)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return m, func() error {
		release()
		defer unlock()
		return c.containers.End(context.WithoutCancel(ctx), x)
	}, nil
}

// checkHost returns docker's error for a wrong path on the host.
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
	info, err := os.Stat(c.Host)
	switch {
	case err == nil && info.Mode()&fs.ModeDevice != 0:
		return localError(fmt.Sprintf("invalid output path: %q must be a directory or a regular file: got a device", c.Host))
	case err == nil && !info.IsDir() && !info.Mode().IsRegular():
		return localError(fmt.Sprintf("invalid output path: %q must be a directory or a regular file: got an irregular file", c.Host))
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

// roots are the directories through which the files of a container are accessed.
func (c *Container) roots() []guestfs.Root {
	roots := []guestfs.Root{{Path: "/", ReadOnly: c.ReadOnly}}
	for target := range c.Tmpfs {
		roots = append(roots, guestfs.Root{Path: target})
	}
	for _, mount := range c.Mounts {
		roots = append(roots, guestfs.Root{Path: mount.Target, ReadOnly: mount.ReadOnly})
	}
	return roots
}

// checkInside checks the path in the container: a copy does not make missing parent
// directories.
func (c *Copy) checkInside(ctx context.Context, files *guestfs.Files, asked containerPath) error {
	at, missing := path.Clean(c.Inside), asked.path
	if !c.Out && c.Host != "-" {
		at = path.Dir(at)
		missing = at
	}
	there, err := files.Stat(ctx, at)
	isThere := err == nil
	switch {
	case !c.Out && c.Host == "-" && (errors.Is(err, fs.ErrNotExist) || isThere && there.Kind != guestfs.KindDir):
		return localError(fmt.Sprintf("destination \"%s:%s\" must be a directory", asked.container, asked.path))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("Could not find the file %s in container %s", missing, asked.container) //nolint:staticcheck // docker's words
	case isThere && c.Out && there.Kind == guestfs.KindDir && isFile(c.Host):
		return localError("cannot copy directory")
	}
	return nil // other errors are reported by the copy itself
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// splitContainerPath reads "container:path".
func splitContainerPath(text string) (container, inside string, ok bool) {
	if text == "-" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, ".") {
		return "", text, false
	}
	container, inside, ok = strings.Cut(text, ":")
	if !ok {
		return "", text, false
	}
	return container, inside, true
}
