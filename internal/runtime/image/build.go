package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/atoll-run/atoll/internal/errhint"
)

// LabelRecipe names, on every image that is built here, the recipe.
const LabelRecipe = "atoll.image"

// Options say how a recipe's image shall differ from the usual one.
type Options struct {
	Target  string            // reference of the result; "" is the recipe's own
	Args    map[string]string // parameters by name; missing or "" is the default
	With    []string          // layers to add
	Network string            // network of the build's steps; "" is the engine's default
	// Lockfile is pnpm's, for the recipe that makes a store of its packages.
	Lockfile []byte
}

// Build makes a recipe's image and returns its reference. A base that the
// engine does not hold is fetched or made first. Progress is for a person; nil
// discards it.
func Build(ctx context.Context, engine Engine, recipe Recipe, opts Options, progress io.Writer) (string, error) {
	if progress == nil {
		progress = io.Discard
	}
	b := builder{engine: engine, network: opts.Network, progress: plainText{progress}}
	return b.build(ctx, recipe, opts)
}

type builder struct {
	engine   Engine
	network  string
	progress io.Writer
}

func (b *builder) build(ctx context.Context, recipe Recipe, opts Options) (string, error) {
	args, target, err := Resolve(recipe, opts)
	if err != nil {
		return "", err
	}
	dockerfile, err := recipe.dockerfile(opts.With)
	if err != nil {
		return "", err
	}
	if args[ArgBaseImage], err = b.provide(ctx, args[ArgBaseImage]); err != nil {
		return "", err
	}
	if err := b.provideOpenClaw(ctx, args[ArgOpenClawBase]); err != nil {
		return "", err
	}
	if registry, declared := args[ArgRegistry]; declared && registry == "" {
		if args[ArgRegistry], err = npmRegistry(ctx, os.Getenv); err != nil {
			return "", err
		}
	}
	if user, declared := args[ArgFinalUser]; declared && user == "" {
		if args[ArgFinalUser], err = b.userOf(ctx, args[ArgBaseImage]); err != nil {
			return "", err
		}
	}
	added, err := recipe.Files()
	if err != nil {
		return "", err
	}
	buildContext, err := packContext(contextFiles(dockerfile, added, opts.Lockfile))
	if err != nil {
		return "", err
	}
	b.printf("building %s on %s", target, args[ArgBaseImage])
	output := &lastLines{Writer: b.progress}
	err = b.engine.Build(ctx, buildContext, BuildOptions{
		Tag: target, Dockerfile: dockerfileName, Args: args, Network: b.network,
		Labels: Labels(recipe.Name, opts.Lockfile),
	}, plainText{output})
	if err != nil {
		return "", failure(target, output, err)
	}
	b.printf("built %s", target)
	return target, nil
}

// Resolve returns the parameters and the target of a recipe, and refuses what cannot be
// built.
func Resolve(recipe Recipe, opts Options) (args map[string]string, target string, err error) {
	args, err = recipe.arguments(opts.Args)
	target = cmp.Or(opts.Target, recipe.Target)
	errs := []error{err, CheckLockfile(recipe, opts.Lockfile)}
	if target == "" && len(opts.Lockfile) > 0 {
		target = StoreReference(opts.Lockfile)
	}
	if args[ArgBaseImage] == "" {
		errs = append(errs, errhint.With(fmt.Errorf("image %s: no base image", recipe.Name), "say what to build on with --base-image"))
	}
	if target == "" {
		errs = append(errs, errhint.With(fmt.Errorf("image %s: no name for the result", recipe.Name), "give one with --target-image"))
	} else if err := checkReference(target); err != nil {
		errs = append(errs, fmt.Errorf("image %s: target: %w", recipe.Name, err))
	}
	if recipe.Name == "extend" && len(opts.With) == 0 {
		errs = append(errs, errhint.With(errors.New("image extend: nothing to add"), "choose layers with --with: "+join(Layers())))
	}
	return args, target, errors.Join(errs...)
}

// userOf returns the user of an image, so that a layer can restore it.
func (b *builder) userOf(ctx context.Context, ref string) (string, error) {
	user, err := b.engine.ImageUser(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", ref, err)
	}
	return cmp.Or(user, "root"), nil
}

func (b *builder) printf(format string, args ...any) {
	fmt.Fprintf(b.progress, "==> "+format+"\n", args...)
}
