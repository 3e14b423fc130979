package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// A volume that sandboxes share is read-only to all of them. One that wants to
// write gets a layer of its own on top: the engine's local driver mounts an
// overlay of the shared volume and two new ones (what was changed, and the
// kernel's scratch space), which go with the container.

const (
	// labelLayer is on the volumes of such a layer; its value is the container.
	labelLayer = "atoll.layer"
	// labelSeed is on the overlay; its value is the shared volume below it.
	labelSeed = "atoll.seed"
	// labelLayered is on a container that has layers to take away.
	labelLayered = "atoll.layered"
)

// addLayers adds the spec's private volumes, each through its layer. What an
// earlier container of the name left is not taken for one.
func (r *Runtime) addLayers(ctx context.Context, made *recipe) error {
	if !isLayered(made.spec) {
		return nil
	}
	if err := r.removeLayers(ctx, made.spec.Name); err != nil {
		return err
	}
	for i, v := range made.spec.Volumes {
		if !v.Private {
			continue
		}
		name, err := r.makeLayer(ctx, made.spec.Name, i, v.Name)
		if err != nil {
			return fmt.Errorf("layer on volume %q: %w", v.Name, err)
		}
		made.addVolume(v, name)
	}
	return nil
}

func isLayered(spec *sandbox.Spec) bool {
	for _, v := range spec.Volumes {
		if v.Private {
			return true
		}
	}
	return false
}

// makeLayer makes the volumes of a layer and returns the one to mount.
func (r *Runtime) makeLayer(ctx context.Context, owner string, index int, seed string) (string, error) {
	lower, err := r.volumePath(ctx, seed)
	if err != nil {
		return "", err
	}
	name := func(part string) string { return fmt.Sprintf("%s.%d.%s", owner, index, part) }
	upper, err := r.makeVolume(ctx, name("upper"), nil, map[string]string{labelLayer: owner})
	if err != nil {
		return "", err
	}
	work, err := r.makeVolume(ctx, name("work"), nil, map[string]string{labelLayer: owner})
	if err != nil {
		return "", err
	}
	for _, place := range []string{lower, upper, work} {
		if strings.ContainsAny(place, ",:\\") {
			return "", fmt.Errorf("the engine keeps volumes at %q, which an overlay cannot name: %w", place, sandbox.ErrUnsupported)
		}
	}
	options := map[string]string{"type": "overlay", "device": "overlay", "o": "lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work}
	_, err = r.makeVolume(ctx, name("merged"), options, map[string]string{labelLayer: owner, labelSeed: seed})
	return name("merged"), err
}

// makeVolume makes a volume and returns where the engine keeps it.
func (r *Runtime) makeVolume(ctx context.Context, name string, options, labels map[string]string) (string, error) {
	labels[sandbox.LabelInstallation] = r.options.Installation
	made, err := ask(ctx, r.engine, func(c *client.Client) (client.VolumeCreateResult, error) {
		return c.VolumeCreate(ctx, client.VolumeCreateOptions{Name: name, Driver: "local", DriverOpts: options, Labels: labels})
	})
	if err != nil {
		return "", err
	}
	if made.Volume.Labels[sandbox.LabelInstallation] != r.options.Installation { // it was there, and is not ours
		return "", fmt.Errorf("volume %q: %w", name, sandbox.ErrForeign)
	}
	if options != nil && made.Volume.Options["o"] != options["o"] {
		return "", fmt.Errorf("volume %q is there with other options: %w", name, sandbox.ErrExists)
	}
	return made.Volume.Mountpoint, nil
}

// volumePath is where the engine keeps a volume of ours.
func (r *Runtime) volumePath(ctx context.Context, name string) (string, error) {
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.VolumeInspectResult, error) {
		return c.VolumeInspect(ctx, name, client.VolumeInspectOptions{})
	})
	switch {
	case isNotFound(err):
		return "", sandbox.ErrNotFound
	case err != nil:
		return "", err
	case found.Volume.Labels[sandbox.LabelInstallation] != r.options.Installation:
		return "", sandbox.ErrForeign
	}
	return found.Volume.Mountpoint, nil
}

// removeLayers takes away what the layers of a container were made of: overlays
// first, because only those does the engine keep while the container is there.
func (r *Runtime) removeLayers(ctx context.Context, owner string) error {
	volumes, err := r.volumesWith(ctx, labelLayer+"="+owner)
	if err != nil {
		return err
	}
	slices.SortStableFunc(volumes, func(a, b volume.Volume) int { return strings.Compare(b.Labels[labelSeed], a.Labels[labelSeed]) })
	for i := range volumes {
		err := r.removeVolume(ctx, volumes[i].Name)
		if isConflict(err) {
			return fmt.Errorf("volume %q: %w", volumes[i].Name, sandbox.ErrExists)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Runtime) removeVolume(ctx context.Context, name string) error {
	_, err := ask(ctx, r.engine, func(c *client.Client) (client.VolumeRemoveResult, error) {
		return c.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	})
	if isNotFound(err) {
		return nil
	}
	return err
}
