package dockercli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/dockercli/dockerformat"
)

func (c *cli) inspectVerb() *verb {
	var format, kind string
	return &verb{usage: " [OPTIONS] NAME|ID [NAME|ID...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.text(&format, "format", "f")
			f.text(&kind, "type", "")
			f.refuse(whyNoSize, "size,s!")
		},
		run: func(ctx context.Context, args []string) error {
			if !slices.Contains([]string{"", "container", "image", "network"}, kind) {
				return localError(fmt.Sprintf("unknown type: %q: must be one of \"container\", \"image\", \"network\"", kind))
			}
			return c.inspectAll(args, format, func(ref string) (any, error) { return c.inspectAny(ctx, ref, kind) })
		}}
}

func (c *cli) imageInspectVerb() *verb {
	var format string
	return &verb{usage: " [OPTIONS] IMAGE [IMAGE...]", least: 1, most: -1,
		flags: func(f *flagSet) {
			f.text(&format, "format", "f")
			f.refuse(whyOneArch, "platform")
		},
		run: func(ctx context.Context, args []string) error {
			return c.inspectAll(args, format, func(ref string) (any, error) { return c.inspectImage(ctx, ref) })
		}}
}

// inspectAll prints what is found, and complains about the rest.
func (c *cli) inspectAll(refs []string, format string, get func(string) (any, error)) error {
	found, problems := []any{}, []error(nil)
	for _, ref := range refs {
		x, err := get(ref)
		if errors.Is(err, ErrElsewhere) {
			return err
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		found = append(found, x)
	}
	if err := c.printFound(found, format); err != nil {
		return err
	}
	for _, err := range problems {
		c.complain(err)
	}
	if len(problems) > 0 {
		return &exitError{code: exitFailure}
	}
	return nil
}

// exitFormat is docker inspect's code for a format that cannot be parsed.
const exitFormat = 64

func (c *cli) printFound(found []any, format string) error {
	if format == "" || format == "json" && len(found) == 0 {
		text, err := dockerformat.Indented(found)
		fmt.Fprint(c.Out, text)
		return err
	}
	if len(found) == 0 {
		fmt.Fprintln(c.Out)
	}
	for _, x := range found {
		text, err := c.formatted(format, x)
		if dockerformat.IsSyntaxError(err) {
			return &exitError{code: exitFormat, err: err}
		}
		fmt.Fprintln(c.Out, text)
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *cli) formatted(format string, x any) (string, error) {
	if format == "json" {
		return dockerformat.JSONText(x)
	}
	return dockerformat.Render(format, x)
}

// inspectAny looks for a container, then for an image, then for a network.
func (c *cli) inspectAny(ctx context.Context, ref, kind string) (any, error) {
	switch kind {
	case "container":
		return c.inspectContainer(ctx, ref)
	case "image":
		return c.inspectImage(ctx, ref)
	case "network":
		return c.inspectNetwork(ctx, ref)
	}
	for _, look := range []func(context.Context, string) (any, error){c.inspectContainer, c.inspectImage, c.inspectNetwork} {
		x, err := look(ctx, ref)
		if !isMissing(err) {
			return x, err
		}
	}
	return nil, localError("Error: No such object: " + ref)
}

func isMissing(err error) bool {
	if _, ok := errors.AsType[*noContainer](err); ok {
		return true
	}
	return errors.Is(err, ErrNoImage) || errors.Is(err, errNoNetwork)
}

func (c *cli) inspectContainer(ctx context.Context, ref string) (any, error) {
	x, s, err := c.get(ctx, ref)
	if err != nil {
		return nil, err
	}
	return describe(x, s), nil
}

func (c *cli) inspectImage(ctx context.Context, ref string) (any, error) {
	if c.images == nil {
		return nil, ErrElsewhere
	}
	image, err := c.images.Image(ctx, ref)
	if errors.Is(err, ErrNoImage) {
		return nil, &missingImage{fmt.Errorf("no such image: %s: No such image: %s", ref, tagged(ref))}
	} else if err != nil {
		return nil, err
	}
	return describeImage(image), nil
}

// missingImage says in docker's words that an image is not here.
type missingImage struct{ error }

func (e *missingImage) Is(target error) bool { return target == ErrNoImage }

// shortReference is a reference without its default parts.
func shortReference(ref string) string {
	return strings.TrimPrefix(strings.TrimPrefix(ref, "docker.io/"), "library/")
}
