package dockercli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

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
	m, release, err := c.enterRunning(ctx, x, source)
	if err != nil {
		return errors.Join(err, errors.New("files are copied over the wire of a running container"))
	}
	defer release()
	if !strings.HasPrefix(inside, "/") {
		inside = path.Join("/", x.Workdir, inside)
	}
	host := to
	if isTo {
		host = from
	}
	roots := []machine.Root{{Path: "/", ReadOnly: x.ReadOnly}}
	for target := range x.Tmpfs {
		roots = append(roots, machine.Root{Path: target})
	}
	for _, mount := range x.Mounts {
		roots = append(roots, machine.Root{Path: mount.Target, ReadOnly: mount.ReadOnly})
	}
	files, err := m.Files(roots)
	if err != nil {
		return err
	}
	skipped, err := c.boxes.Copy(ctx, files, &Copy{Inside: inside, Host: host, Out: isFrom, In: c.In, To: c.Out})
	for _, name := range skipped {
		fmt.Fprintln(c.Err, "not copied: "+name)
	}
	if errors.Is(err, fs.ErrNotExist) && isFrom {
		return fmt.Errorf("Could not find the file %s in container %s", inside, source) //nolint:staticcheck // docker's words
	}
	return err
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
