package docker

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/sandbox"
)

// labelVolume is on a volume that sandboxes share; its value is the name that
// people know it by.
const labelVolume = "atoll.volume"

// SeedVolume makes a volume with what an image has at a path, and returns the
// engine's name of it. The name is not published before the volume is filled.
func (r *Runtime) SeedVolume(ctx context.Context, name, image, path string) (_ string, err error) {
	own := "atoll-" + name + "-" + strings.ToLower(rand.Text()[:12])
	if _, err := r.makeVolume(ctx, own, nil, map[string]string{labelVolume: name}); err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.removeVolume(context.WithoutCancel(ctx), own))
		}
	}()
	// The engine fills a new volume with what the image has in its place.
	helper, err := ask(ctx, r.engine, func(c *client.Client) (client.ContainerCreateResult, error) {
		return c.ContainerCreate(ctx, client.ContainerCreateOptions{
			Name:   "atoll-seed-" + strings.ToLower(rand.Text()[:12]),
			Config: &container.Config{Image: image, Entrypoint: []string{"/nothing-to-run"}, Labels: map[string]string{labelHelper: r.options.Installation}},
			HostConfig: &container.HostConfig{NetworkMode: "none", ReadonlyRootfs: true,
				Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: own, Target: path}}},
		})
	})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.discard(context.WithoutCancel(ctx), helper.ID)) }()
	r.fill(ctx, helper.ID)
	return own, r.holdsSomething(ctx, helper.ID, path)
}

// fill has Podman fill the volumes of a container: it does so only on the way to
// start it, and this one has nothing to run, which is no failure.
func (r *Runtime) fill(ctx context.Context, helper string) {
	if r.options.Flavor != Podman {
		return
	}
	_, _ = ask(ctx, r.engine, func(c *client.Client) (client.ContainerStartResult, error) {
		return c.ContainerStart(ctx, helper, client.ContainerStartOptions{})
	})
}

// holdsSomething looks for a first file below a path: an image that has none
// there fills nothing, and an engine says nothing of it.
func (r *Runtime) holdsSomething(ctx context.Context, helper, path string) error {
	out, err := ask(ctx, r.engine, func(c *client.Client) (client.CopyFromContainerResult, error) {
		return c.CopyFromContainer(ctx, helper, client.CopyFromContainerOptions{SourcePath: path})
	})
	if err != nil {
		return err
	}
	defer out.Content.Close()
	archive := tar.NewReader(out.Content)
	for range 2 { // the directory itself, and something in it
		if _, err := archive.Next(); errors.Is(err, io.EOF) {
			return fmt.Errorf("the image has nothing at %s", path)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// SharedVolumes returns the engine's names of the volumes that sandboxes may
// share, with the time each was made.
func (r *Runtime) SharedVolumes(ctx context.Context, name string) (map[string]time.Time, error) {
	found, err := r.volumesWith(ctx, labelVolume+"="+name)
	if err != nil {
		return nil, err
	}
	all := map[string]time.Time{}
	for i := range found {
		made, _ := time.Parse(time.RFC3339, found[i].CreatedAt)
		all[found[i].Name] = made
	}
	return all, nil
}

// LayersOn returns the containers that have a layer on a shared volume.
func (r *Runtime) LayersOn(ctx context.Context, shared string) ([]string, error) {
	found, err := r.volumesWith(ctx, labelSeed+"="+shared)
	if err != nil {
		return nil, err
	}
	var owners []string
	for i := range found {
		owners = append(owners, found[i].Labels[labelLayer])
	}
	slices.Sort(owners)
	return slices.Compact(owners), nil
}

// RemoveShared removes a shared volume that no layer is on.
func (r *Runtime) RemoveShared(ctx context.Context, shared string) error {
	users, err := r.LayersOn(ctx, shared)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return fmt.Errorf("volume %q: used by %s: %w", shared, strings.Join(users, ", "), sandbox.ErrBusy)
	}
	return r.removeVolume(ctx, shared)
}

// volumesWith are this installation's volumes with a label. Podman takes several
// filters for alternatives, so it is looked again.
func (r *Runtime) volumesWith(ctx context.Context, label string) ([]volume.Volume, error) {
	filters := client.Filters{}.Add("label", label).Add("label", sandbox.LabelInstallation+"="+r.options.Installation)
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.VolumeListResult, error) {
		return c.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	})
	name, value, valued := strings.Cut(label, "=")
	return slices.DeleteFunc(found.Items, func(v volume.Volume) bool {
		own, ok := v.Labels[name]
		return !ok || valued && own != value || v.Labels[sandbox.LabelInstallation] != r.options.Installation
	}), err
}

// NewestImage returns the reference of the newest image with a label; "" if
// there is none. An image that lost its last tag has no reference: the engine
// would list it as <none>:<none>.
func (r *Runtime) NewestImage(ctx context.Context, label string) (string, error) {
	filters := client.Filters{}.Add("label", label).Add("dangling", "false")
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageListResult, error) {
		return c.ImageList(ctx, client.ImageListOptions{Filters: filters})
	})
	var ref string
	var newest int64
	for i := range found.Items {
		if item := &found.Items[i]; item.Created > newest && len(item.RepoTags) > 0 {
			ref, newest = item.RepoTags[0], item.Created
		}
	}
	return ref, err
}
