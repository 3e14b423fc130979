package sandboxcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// NewVolumesCommand returns the command `atoll volumes`.
func NewVolumesCommand(c *console.Env) *cobra.Command {
	e := &env{c}
	cmd := &cobra.Command{
		Use:   "volumes",
		Short: "Fill, list and remove the volumes that sandboxes share",
		Example: `  atoll volumes seed pnpm_store
  atoll volumes list`,
		Long: `Fill, list and remove the volumes that sandboxes share, on the Docker or Podman
engine or without one.

There is one, ` + provide.PnpmStore + `: the packages of a lockfile, so that pnpm install
--offline works without a network. Nobody can change it: each sandbox writes to
a layer of its own, which goes with it.`,
	}
	cmd.AddCommand(newVolumesListCommand(e), newVolumesSeedCommand(e), newVolumesRmCommand(e))
	return cmd
}

func newVolumesListCommand(e *env) *cobra.Command {
	return console.NewListCommand("volumes", "Show the volumes that were filled", func(ctx context.Context, asJSON bool) error {
		return runVolumesList(ctx, e, asJSON)
	})
}

func runVolumesList(ctx context.Context, e *env, asJSON bool) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	volumes, err := a.Volumes(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if volumes == nil {
			volumes = []*provide.Volume{}
		}
		return e.PrintJSON(map[string]any{"volumes": volumes})
	}
	if len(volumes) == 0 {
		fmt.Fprintln(e.Out, "No volumes. `atoll volumes seed "+provide.PnpmStore+"` fills one.")
		return nil
	}
	t := console.NewTable("NAME", "BACKEND", "IMAGE", "AT", "AGE", "USED BY")
	for _, v := range volumes {
		t.Add(v.Name, v.Backend, v.Image, v.Path, console.Ago(time.Since(v.Seeded)), fmt.Sprintf("%d sandboxes", len(v.UsedBy)))
	}
	t.Print(e.Out)
	return nil
}

func newVolumesSeedCommand(e *env) *cobra.Command {
	var from, backend string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "seed NAME",
		Short: "Fill a volume from an image",
		Long: `Fill a volume from an image, which is pulled if it is not there. A volume that
was filled from the same image is left alone. From another, it is filled anew:
sandboxes that stand on the old one keep it until they are gone.`,
		Example: `  atoll volumes seed pnpm_store
  atoll volumes seed pnpm_store --from registry.example.com/team/pnpm-store:latest`,
		Args: console.ExactlyOne("volume"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVolumesSeed(cmd.Context(), e, volumeOf{backend, args[0], from}, asJSON)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "`image` to fill it from (default: the newest that `atoll images build pnpm-store` made)")
	volumeBackendFlag(cmd, &backend)
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

// volumeOf says which volume is meant.
type volumeOf struct{ backend, name, from string }

func volumeBackendFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "backend", "", "docker, podman or linux (default: what sandboxes use)")
}

func runVolumesSeed(ctx context.Context, e *env, o volumeOf, asJSON bool) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	if o.backend, err = a.VolumeBackend(o.backend); err != nil {
		return err
	}
	v, made, err := a.SeedVolume(ctx, o.backend, o.name, o.from, e.Err)
	if err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"volume": v, "seeded": made})
	}
	verb := "was filled already"
	if made {
		verb = "is filled"
	}
	_, err = fmt.Fprintf(e.Out, "Volume %s %s from %s\n", v.Name, verb, v.Image)
	return err
}

func newVolumesRmCommand(e *env) *cobra.Command {
	var backend string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Short:   "Remove a volume that no sandbox stands on",
		Example: `  atoll volumes rm pnpm_store`,
		Args:    console.ExactlyOne("volume"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runVolumesRm(cmd.Context(), e, volumeOf{backend: backend, name: args[0]}, asJSON)
		},
	}
	volumeBackendFlag(cmd, &backend)
	console.JSONFlag(cmd, &asJSON)
	return cmd
}

func runVolumesRm(ctx context.Context, e *env, o volumeOf, asJSON bool) error {
	a, err := e.Open(ctx)
	if err != nil {
		return e.ConfigError(err, asJSON)
	}
	if o.backend, err = a.VolumeBackend(o.backend); err != nil {
		return err
	}
	if err := a.RemoveVolume(ctx, o.backend, o.name); err != nil {
		return err
	}
	if asJSON {
		return e.PrintJSON(map[string]any{"removed": o.name})
	}
	_, err = fmt.Fprintf(e.Out, "Volume %s is removed\n", o.name)
	return err
}
