package local

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/image/debian"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// The recipes that can be built without an engine.
const (
	recipeSandbox  = "sandbox"
	recipeCommon   = "common"
	recipeOpenClaw = "openclaw"
	recipeStore    = "pnpm-store"
	recipeCode     = "code-interpreter"
	recipeBrowser  = "browser"
)

// CanBuild reports whether a recipe can be built without an engine.
func CanBuild(recipe image.Recipe) bool {
	return slices.Contains([]string{recipeSandbox, recipeCommon, recipeOpenClaw, recipeStore, recipeCode, recipeBrowser}, recipe.Name)
}

// Recipe builds the image of a recipe from packages of the machine's distribution and
// of npm.
func (b *Builder) Recipe(ctx context.Context, recipe image.Recipe, opts image.Options) (*Result, error) {
	args, target, err := image.Resolve(recipe, opts)
	if err != nil {
		return nil, err
	}
	if err := b.checkRecipe(recipe, &opts); err != nil {
		return nil, err
	}
	release, err := b.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b.clean(stepPrefix)
	made, err := b.recipe(ctx, recipe, &order{args, target, opts.Lockfile})
	if err != nil {
		return nil, err
	}
	b.clean(archivesDir)
	b.clean(aptDir)
	made.Recipe = recipe.Name
	return made, nil
}

// checkRecipe refuses what only an engine can do.
func (b *Builder) checkRecipe(recipe image.Recipe, opts *image.Options) error {
	const hint = "leave it out, or build on a machine with a container engine"
	switch {
	case !CanBuild(recipe):
		return errhint.With(fmt.Errorf("image %s: it takes a container engine", recipe.Name), "install Docker or Podman, and name it with --backend")
	case opts.Args[image.ArgBaseImage] != "":
		return errhint.With(errors.New("--base-image: without an engine, the base is made from this machine's distribution"), hint)
	case opts.Args[image.ArgInstallBrew] == "1":
		return errhint.With(errors.New("--install-brew: Homebrew is installed by engines only"), hint)
	case len(opts.With) > 0, opts.Network != "":
		return errhint.With(errors.New("--with and --network are for engines"), hint)
	}
	if recipe.Name == recipeStore {
		return nil
	}
	return b.Apt.Available()
}

// order is what was asked of a recipe.
type order struct {
	args     map[string]string
	target   string
	lockfile []byte
}

func (b *Builder) recipe(ctx context.Context, recipe image.Recipe, o *order) (*Result, error) {
	switch recipe.Name {
	case recipeCommon:
		return b.common(ctx, o)
	case recipeOpenClaw:
		return b.openclaw(ctx, o)
	case recipeStore:
		return b.store(ctx, o)
	}
	files, err := recipe.Files()
	if err != nil {
		return nil, err
	}
	return b.system(ctx, system{
		recipe: recipe.Name, name: o.target, user: o.args[image.ArgFinalUser], packages: o.args[image.ArgPackages],
		files: files, compile: recipe.Name == recipeCode,
	})
}

// common builds the sandbox for development: more packages, and package managers of
// npm on top.
func (b *Builder) common(ctx context.Context, o *order) (*Result, error) {
	args, target := o.args, o.target
	plain, err := packagesOf(recipeSandbox)
	if err != nil {
		return nil, err
	}
	root := system{recipe: recipeCommon, name: target, user: args[image.ArgFinalUser], packages: plain + " " + args[image.ArgPackages]}
	var tools, commands []string
	for _, tool := range []struct{ name, on, version string }{{"pnpm", args[image.ArgInstallPnpm], args["PNPM_VERSION"]}, {"bun", args[image.ArgInstallBun], args["BUN_VERSION"]}} {
		if tool.on == "1" {
			tools, commands = append(tools, tool.name+"@"+tool.version), append(commands, tool.name)
		}
	}
	if len(tools) == 0 {
		return b.system(ctx, root)
	}
	root.name = "atoll-common-root:latest"
	base, err := b.system(ctx, root)
	if err != nil {
		return nil, err
	}
	b.report("resolving %s", strings.Join(tools, " "))
	return b.packages(ctx, tools[0], &layer{recipe: recipeCommon, base: rootfs.ShortName(base.Image.Names[0]), dest: "/opt/atoll/tools", commands: commands, names: []string{target}, user: root.user}, tools[1:]...)
}

// packagesOf returns the packages that a recipe installs by default.
func packagesOf(name string) (string, error) {
	recipe, err := image.Find(name)
	if err != nil {
		return "", err
	}
	args, err := recipe.Defaults()
	return args[image.ArgPackages], err
}

// system is a root made of packages.
type system struct {
	recipe, name   string
	user, packages string
	uid            int               // of the user; 0 is the usual one
	home           string            // of the user; "" is the usual one
	files          map[string]string // of the recipe itself, by their paths
	compile        bool              // modules of Python, as their packages' scripts do
}

// aptDir is where apt-get keeps its state.
const aptDir = "apt"

// sandboxUID is the user id of the user that roots have, as useradd gives it.
const sandboxUID = 1000

// libraries are what programs of npm need and no package of the recipes brings.
const libraries = " libstdc++6 libatomic1"

// system builds a root.
func (b *Builder) system(ctx context.Context, s system) (*Result, error) {
	dir := filepath.Join(b.Dir, aptDir)
	packages := strings.Fields(s.packages + libraries)
	b.report("resolving packages of this machine's distribution")
	archives, err := b.Apt.Resolve(ctx, dir, packages)
	if err != nil {
		return nil, spaceHint(b.Dir, err)
	}
	l := &layer{
		recipe: s.recipe, base: rootfs.HostName, onHost: true, alone: true, isRoot: true, dest: "/opt/atoll/root", names: []string{s.name}, user: s.user,
		env: map[string]string{"HOME_USER": s.user, "HOME_UID": strconv.Itoa(cmp.Or(s.uid, sandboxUID)), "HOME_DIR": s.home}, files: map[string]string{},
		source: "packages of this machine's distribution",
	}
	l.texts = s.files
	if s.compile {
		l.env["COMPILE"] = "1"
	}
	if l.script, err = script("debian.sh"); err != nil {
		return nil, err
	}
	l.list = debList(archives)
	for _, a := range archives {
		l.files[a.File] = filepath.Join(debian.Archives(dir), a.File)
	}
	l.fetch = func(ctx context.Context) error {
		b.report("fetching %d packages", len(archives))
		return b.Apt.Fetch(ctx, dir, packages, archives)
	}
	return b.build(ctx, l)
}

// debList is the list of archives for the script. Sizes are in it so that another
// archive makes another image.
func debList(archives []debian.Archive) []byte {
	var text bytes.Buffer
	for _, a := range archives {
		fmt.Fprintf(&text, "%s %d\n", a.File, a.Size)
	}
	return text.Bytes()
}
