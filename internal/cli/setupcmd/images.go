package setupcmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/agent/preset"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/image/local"
)

// NewImagesCommand returns the command `atoll images`.
func NewImagesCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{Use: "images", Short: "Build, fetch, list and remove the images that sandboxes are made from", Example: `  atoll images pull debian:bookworm-slim
  atoll images list`}
	cmd.AddCommand(newImagesBuildCommand(e), newImagesPullCommand(e), newImagesImportCommand(e), newImagesListCommand(e), newImagesRmCommand(e))
	return cmd
}

type buildOptions struct {
	backend, target string
	params          []parameter
	with            []string
	network         string
	lockfile        string
	asJSON          bool
}

// parameter is a build argument that a flag or the environment may set.
type parameter struct {
	flag, variable, about string
	value                 *string
}

func (o *buildOptions) parameters() []parameter {
	return []parameter{
		{"base-image", image.ArgBaseImage, "image to build on", new(string)},
		{"packages", image.ArgPackages, "Debian packages to install", new(string)},
		{"install-pnpm", image.ArgInstallPnpm, "1 to install pnpm", new(string)},
		{"install-bun", image.ArgInstallBun, "1 to install bun", new(string)},
		{"install-brew", image.ArgInstallBrew, "1 to install Homebrew", new(string)},
		{"openclaw-base", image.ArgOpenClawBase, "published image to take OpenClaw from", new(string)},
		{"final-user", image.ArgFinalUser, "user that the image runs as", new(string)},
	}
}

func newImagesBuildCommand(e *env) *cobra.Command {
	var o buildOptions
	o.params = o.parameters()
	cmd := &cobra.Command{
		Use:   "build RECIPE",
		Short: "Build one of the images: " + strings.Join(RecipeNames(), ", "),
		Long: "Build one of the images. Where no registry answers, the base is made from\nDebian's packages, and OpenClaw's own image from npm's.\n\n" + recipeList() +
			"\nImages of agents need no engine. AGENT@VERSION chooses a version, AGENT@latest the\nnewest one. They lie on the host's own programs, or on the image of --base-image.\n" +
			"\nFlags default to the environment variables of the same meaning (BASE_IMAGE,\nPACKAGES, INSTALL_PNPM, …), and those to the recipe's own values.",
		Example: `  atoll images build sandbox
  atoll images build common --install-brew 0
  atoll images build sandbox --with gh --target-image my-sandbox:gh
  atoll images build openclaw
  atoll images build claude
  atoll images build codex@0.166.0
  atoll images build pnpm-store --lockfile pnpm-lock.yaml`,
		Args: console.ExactlyOne("recipe"),
		RunE: func(cmd *cobra.Command, args []string) error { return runImagesBuild(cmd.Context(), e, o, args[0]) },
	}
	flags := cmd.Flags()
	for _, p := range o.params {
		flags.StringVar(p.value, p.flag, "", p.about+" (default: $"+p.variable+", else the recipe's)")
	}
	flags.StringVar(&o.target, "target-image", e.Getenv("TARGET_IMAGE"), "`reference` of the result (default: $TARGET_IMAGE, else the recipe's)")
	flags.StringSliceVar(&o.with, "with", nil, "layers to add: "+strings.Join(image.Layers(), ", "))
	flags.StringVar(&o.backend, "backend", "", "docker, podman, or linux to build without an engine (default: the engine that sandboxes use, if one answers)")
	flags.StringVar(&o.lockfile, "lockfile", "", "pnpm-lock.yaml `file` whose packages a pnpm-store holds")
	flags.StringVar(&o.network, "network", "", "network of the build's steps (default: the engine's)")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

// RecipeNames returns the names of the images that can be built.
func RecipeNames() []string {
	var names []string
	for _, r := range image.Recipes() {
		names = append(names, r.Name)
	}
	return append(names, agentNames()...)
}

func recipeList() string {
	var b strings.Builder
	for _, r := range image.Recipes() {
		fmt.Fprintf(&b, "  %-10s %s → %s\n", r.Name, r.About, r.Target)
	}
	for _, p := range agents(preset.Builtin()) {
		fmt.Fprintf(&b, "  %-10s %s, of npm's %s → %s\n", p.ID, p.Title, p.NPM.Package, p.ID)
	}
	return b.String()
}

// arguments are the parameters that flags set, and those that the environment
// sets and the recipe knows: a variable may be meant for another recipe.
func (o *buildOptions) arguments(e *env, recipe image.Recipe) (map[string]string, error) {
	known, err := recipe.Defaults()
	if err != nil {
		return nil, err
	}
	args := map[string]string{}
	for _, p := range o.params {
		if _, ok := known[p.variable]; ok {
			args[p.variable] = e.Getenv(p.variable)
		}
		if *p.value != "" {
			args[p.variable] = *p.value
		}
	}
	return args, nil
}

// readLockfile reads no more of a lockfile than one can have.
func readLockfile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("lockfile: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, image.MaxLockfile+1))
	if err == nil && len(text) == 0 {
		err = fmt.Errorf("%s is empty", path)
	}
	if err != nil {
		return nil, fmt.Errorf("lockfile: %w", err)
	}
	return text, nil
}

func runImagesBuild(ctx context.Context, e *env, o buildOptions, name string) error {
	a, err := e.Open(ctx)
	if err != nil {
		return err
	}
	presets, err := preset.All(a.Paths.AtollState)
	if err != nil {
		return err
	}
	if p, ok := agentOf(presets, name); ok {
		return buildAgent(ctx, e, a, o, p)
	}
	recipe, err := image.Find(name)
	if err != nil {
		return console.WithCode(console.ExitUsage, errhint.With(err, "use one of "+strings.Join(RecipeNames(), ", ")))
	}
	lockfile, err := readLockfile(o.lockfile)
	if err == nil {
		err = image.CheckLockfile(recipe, lockfile)
	}
	if err != nil {
		return console.WithCode(console.ExitUsage, err)
	}
	args, err := o.arguments(e, recipe)
	if err != nil {
		return err
	}
	options := image.Options{Target: o.target, Args: args, With: o.with, Network: o.network, Lockfile: lockfile}
	inStore, err := a.BuildsInStore(o.backend)
	if err != nil {
		return err
	}
	if inStore {
		return e.buildInStore(a, o.asJSON, func(b *local.Builder) (*local.Result, error) { return b.Recipe(ctx, recipe, options) })
	}
	engine, err := a.ImageEngine(ctx, o.backend)
	if err != nil {
		return err
	}
	ref, err := image.Build(ctx, engine, recipe, options, e.Err)
	if err != nil {
		return err
	}
	if o.asJSON {
		return e.PrintJSON(map[string]any{"image": ref, "recipe": recipe.Name})
	}
	_, err = fmt.Fprintf(e.Out, "Sandbox image built: %s\n", ref)
	return err
}
