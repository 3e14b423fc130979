package provide

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/image/local"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// extendImage has the networked half of a plan stand on an image with the programs that
// sandbox.networkExecAllow names, as far as Atoll can add them and the configured image
// lacks them. The images are made if they are not there.
func (a *Installation) extendImage(ctx context.Context, p *plan.Plan) error {
	if p.Net == nil {
		return nil
	}
	for _, program := range addablePrograms(p.Router.Commands()) {
		extend := a.extendOnEngine
		if p.Net.Backend == BackendLinux {
			extend = a.extendInStore
		}
		if err := extend(ctx, p, program); err != nil {
			err = fmt.Errorf("%s is not in the image %s, and cannot be added: %w", program, p.Net.Image, err)
			hint := "name an image that has it, or take it out of sandbox.networkExecAllow"
			return &sandbox.ProvisionError{Name: p.Net.Name, Step: "image", Err: errhint.With(err, hint)}
		}
	}
	return nil
}

// addablePrograms are the programs that patterns of commands name and that Atoll can add.
func addablePrograms(patterns []string) (programs []string) {
	for _, pattern := range patterns {
		words := strings.Fields(pattern)
		if len(words) > 0 && slices.Contains(image.Layers(), words[0]) && local.CanExtend(words[0]) && !slices.Contains(programs, words[0]) {
			programs = append(programs, words[0])
		}
	}
	return programs
}

// extendInStore adds a program to the image of sandboxes that need no engine.
func (a *Installation) extendInStore(ctx context.Context, p *plan.Plan, program string) error {
	store, err := a.Images()
	if err != nil {
		return err
	}
	if has, err := store.HasProgram(ctx, p.Net.Image, program); has || isMissing(err) {
		return nil
	}
	builder, err := a.ImageBuilder(func(line string) { a.Logger.InfoContext(ctx, line, "program", program) })
	if err != nil {
		return err
	}
	made, err := builder.Extend(ctx, p.Net.Image, program)
	if err != nil {
		return err
	}
	p.Net.Image, p.SearchPath = rootfs.ShortName(made.Image.Names[0]), made.Image.Config.SearchPath()
	return nil
}

// extendOnEngine adds a program to an image of an engine. What the layer does not need
// to add, it leaves as it is.
func (a *Installation) extendOnEngine(ctx context.Context, p *plan.Plan, program string) error {
	engine, err := a.Engine(ctx, p.Net.Backend)
	if err != nil {
		return err
	}
	id, err := engine.ImageID(ctx, p.Net.Image)
	if isMissing(err) {
		return nil
	} else if err != nil {
		return err
	}
	target := local.Extended(id, program)
	lock, err := a.Locks.Hold(ctx, "image "+target)
	if err != nil {
		return err
	}
	defer lock.Release()
	if held, err := engine.HasImage(ctx, target); held || err != nil {
		p.Net.Image = target
		return err
	}
	recipe, err := image.Find("extend")
	if err != nil {
		return err
	}
	a.Logger.InfoContext(ctx, "adding a program to the image of the networked sandbox", "image", p.Net.Image, "program", program)
	p.Net.Image, err = image.Build(ctx, engine, recipe, image.Options{Target: target, Args: map[string]string{image.ArgBaseImage: p.Net.Image}, With: []string{program}}, nil)
	return err
}

// isMissing reports whether an image is not there: making the sandbox fails then, and
// says so.
func isMissing(err error) bool {
	return errors.Is(err, sandbox.ErrNoImage) || errors.Is(err, rootfs.ErrNoImage)
}
