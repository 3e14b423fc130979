package setupcmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/app"
	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

func newImagesPullCommand(e *env) *cobra.Command {
	var asJSON bool
	var as string
	cmd := &cobra.Command{
		Use:   "pull IMAGE",
		Short: "Fetch an image from its registry",
		Long: `Fetch an image from its registry, for sandboxes that need no engine.

Everything is compared with its digest, unpacked once, and kept in the state
directory; images share the layers they have in common. Credentials are those
that docker login or podman login keep for you.

With --as it has a second name. Plain Debian as the image that sandboxes use by
default works, and has none of its tools: every result says so.`,
		Example: `  atoll images pull debian:bookworm-slim
  atoll images pull debian:bookworm-slim --as openclaw-sandbox:bookworm-slim
  atoll images pull registry.example.com/team/tools@sha256:4f2a…`,
		Args: console.ExactlyOne("image"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runImagesPull(cmd.Context(), e, args[0], as, asJSON)
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "second `name` of the image")
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func runImagesPull(ctx context.Context, e *env, ref, as string, asJSON bool) error {
	_, store, err := e.openImages(ctx)
	if err != nil {
		return err
	}
	report, done := e.imageProgress("pulling " + ref)
	image, err := store.Pull(ctx, ref, rootfs.AddOptions{Report: report})
	done()
	if err == nil && as != "" {
		if err = store.Tag(ctx, ref, as); err == nil {
			image, err = store.Find(ctx, as)
		}
	}
	if err != nil {
		return err
	}
	return e.printAdded("pulled", []*rootfs.Image{image}, asJSON)
}

// openImages opens the installation and its store of images.
func (e *env) openImages(ctx context.Context) (*app.App, *rootfs.Store, error) {
	a, err := e.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	store, err := a.Images()
	return a, store, err
}

// imageProgress shows how far an image has come.
func (e *env) imageProgress(what string) (report func(rootfs.Progress), done func()) {
	var last atomic.Pointer[rootfs.Progress]
	done = e.ProgressOf(func() string {
		p := last.Load()
		switch {
		case p == nil:
			return what
		case p.Bytes > 0:
			return fmt.Sprintf("%s: %s of %s", what, console.SizeText(min(p.BytesDone, p.Bytes)), console.SizeText(p.Bytes))
		}
		return fmt.Sprintf("%s: layer %d of %d", what, p.LayersDone, p.Layers)
	})
	return func(p rootfs.Progress) { last.Store(&p) }, done
}

func (e *env) printAdded(verb string, images []*rootfs.Image, asJSON bool) error {
	if asJSON {
		return e.PrintJSON(map[string]any{"images": images})
	}
	for _, i := range images {
		fmt.Fprintf(e.Out, "Sandbox image %s: %s (%s, %s in %d files, %d layers)\n", verb, namesText(i), shortID(i.ID), console.SizeText(i.Size), i.Files, len(i.Layers))
	}
	return nil
}

func namesText(i *rootfs.Image) string {
	var names []string
	for _, n := range i.Names {
		names = append(names, rootfs.ShortName(n))
	}
	return strings.Join(names, ", ")
}

func shortID(id string) string { return shortenedTo(strings.TrimPrefix(id, "sha256:"), 12) }

func shortenedTo(s string, n int) string { return s[:min(n, len(s))] }

type importOptions struct {
	fromEngine, backend string
	fromHost            bool
	asJSON              bool
}

func newImagesImportCommand(e *env) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import (PATH | - | --from-docker IMAGE | --from-host) [NAME]",
		Short: "Take in an image from a file, a directory or a container engine",
		Long: `Take in an image for sandboxes that need no engine. PATH is

  an OCI image layout, as a directory or in a tar
  an archive that docker save or podman save wrote
  the tar of a root directory

each also compressed by gzip or zstd; - is standard input. NAME is what to call
the image; the tar of a root directory needs one.

--from-host makes an image of packages that are installed on this machine (dpkg):
the essential ones, a few that agents use, and what those need. It has no files
but those of packages.`,
		Example: `  docker save my-sandbox:1 | atoll images import -
  atoll images import --from-docker openclaw-sandbox:bookworm-slim
  atoll images import rootfs.tar.zst my-sandbox:2
  atoll images import --from-host my-packages:1`,
		Args: func(cmd *cobra.Command, args []string) error { return o.checkArgs(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error { return runImagesImport(cmd.Context(), e, o, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.fromEngine, "from-docker", "", "copy this `image` of the container engine")
	flags.StringVar(&o.backend, "backend", "docker", "the engine of --from-docker: docker or podman")
	flags.BoolVar(&o.fromHost, "from-host", false, "make an image of this machine's packages")
	console.JSONFlag(cmd, &o.asJSON)
	return cmd
}

func (o *importOptions) checkArgs(cmd *cobra.Command, args []string) error {
	most := 2
	if o.fromEngine != "" || o.fromHost {
		most = 1
	}
	switch {
	case o.fromHost && o.fromEngine != "":
		return console.Usage(cmd, errors.New("--from-host and --from-docker exclude each other"))
	case len(args) > most:
		return console.Usage(cmd, fmt.Errorf("unexpected argument %q", args[most]))
	case len(args) == 0 && o.fromEngine == "" && !o.fromHost:
		return console.Usage(cmd, errors.New("no path was given"))
	case cmd.Flags().Changed("backend") && o.fromEngine == "":
		return console.Usage(cmd, errors.New("--backend is of use with --from-docker only"))
	}
	return nil
}

func runImagesImport(ctx context.Context, e *env, o importOptions, args []string) error {
	a, store, err := e.openImages(ctx)
	if err != nil {
		return err
	}
	source := o.fromEngine
	if o.fromHost {
		source = "this machine's packages"
	}
	if source == "" {
		source, args = args[0], args[1:]
	}
	report, done := e.imageProgress("importing " + source)
	add := rootfs.AddOptions{Name: strings.Join(args, ""), Report: report}
	var images []*rootfs.Image
	switch {
	case o.fromHost:
		var image *rootfs.Image
		if image, err = a.ImportHost(ctx, add); err == nil {
			images = []*rootfs.Image{image}
		}
	case o.fromEngine != "":
		images, err = a.ImportFromEngine(ctx, o.backend, source, add)
	case source == "-":
		images, err = store.ImportFrom(ctx, e.In, "standard input", add)
	default:
		images, err = store.Import(ctx, source, add)
	}
	done()
	if err != nil {
		return err
	}
	return e.printAdded("imported", images, o.asJSON)
}

func newImagesListCommand(e *env) *cobra.Command {
	return console.NewListCommand("images", "Show the images that need no engine", func(ctx context.Context, asJSON bool) error {
		return runImagesList(ctx, e, asJSON)
	})
}

func runImagesList(ctx context.Context, e *env, asJSON bool) error {
	_, store, err := e.openImages(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	images, err := store.List(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if images == nil {
			images = []*rootfs.Image{}
		}
		return e.PrintJSON(map[string]any{"images": images})
	}
	if len(images) == 0 {
		fmt.Fprintln(e.Out, "No images. `atoll images build`, `pull` and `import` bring some; without one, sandboxes use this host's programs.")
		return nil
	}
	t := console.NewTable("NAME", "ID", "SIZE", "FILES", "LAYERS", "AGE", "USED BY", "NOTE")
	for _, i := range images {
		t.Add(namesText(i), shortID(i.ID), console.SizeText(i.Size), fmt.Sprint(i.Files), fmt.Sprint(len(i.Layers)),
			console.Ago(time.Since(i.Added)), usersText(i), i.Problem)
	}
	t.Print(e.Out)
	return nil
}

func usersText(i *rootfs.Image) string {
	switch len(i.UsedBy) {
	case 0:
		return "-"
	case 1:
		return "1 sandbox"
	}
	return fmt.Sprintf("%d sandboxes", len(i.UsedBy))
}

func newImagesRmCommand(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rm IMAGE…",
		Short: "Remove images that need no engine",
		Long: `Remove images by name or id. An image that has other names stays under those.
What sandboxes stand on stays on disk until they are gone.`,
		Example: `  atoll images rm my-sandbox:1
  atoll images rm 4f2ac91d77e0`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.Usage(cmd, errors.New("no image was given"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runImagesRm(cmd.Context(), e, args, asJSON) },
	}
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func runImagesRm(ctx context.Context, e *env, refs []string, asJSON bool) error {
	a, store, err := e.openImages(ctx)
	if err != nil {
		return err
	}
	var removed []rootfs.Removed
	var failed []error
	for _, ref := range refs {
		full, err := pickImage(ctx, store, ref)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		r, err := store.Remove(ctx, full)
		if err != nil {
			failed = append(failed, errhint.With(err, "`atoll images list` shows what there is"))
			continue
		}
		removed = append(removed, r)
		if !asJSON {
			fmt.Fprintf(e.Out, "Removed: %s\n", console.Printable(ref))
		}
	}
	collected, err := a.CollectImages(ctx)
	if asJSON {
		failed = append(failed, e.PrintJSON(map[string]any{"removed": removed, "collected": collected}))
	} else if collected.Layers > 0 {
		fmt.Fprintf(e.Out, "Freed: %s in %d layers\n", console.SizeText(collected.Bytes), collected.Layers)
	}
	if collected.Busy {
		e.Notice("images are in use at this moment, so nothing was freed yet; the next removal or `atoll sandbox prune` does it")
	}
	return errors.Join(append(failed, err)...)
}
