package provide

import (
	"context"
	"errors"
	"fmt"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// Volumes without an engine are images of the store: seeding gives an image one more
// name, by which sandboxes find it.

// volumeImage is the name of the image that is a volume.
func volumeImage(name string) string { return "atoll-volume:" + name }

// storedVolume returns a volume of the linux backend.
func (a *Installation) storedVolume(ctx context.Context, name string) (*Volume, error) {
	found := a.ImportedImage(ctx, volumeImage(name))
	if found == nil {
		return nil, errhint.With(fmt.Errorf("volume %q: %w", name, sandbox.ErrNotFound), "fill it with `atoll volumes seed "+name+" --backend linux`")
	}
	v := &Volume{Name: name, Backend: BackendLinux, Engine: found.ID, ImageID: found.ID, Path: image.StorePath, Seeded: found.Added, Image: found.ID}
	for _, other := range found.Names {
		if rootfs.ShortName(other) != volumeImage(name) {
			v.Image = rootfs.ShortName(other)
		}
	}
	store, err := a.Images()
	if err != nil {
		return nil, err
	}
	v.UsedBy, err = store.Users(found)
	return v, err
}

// seedStored makes an image of the store a volume.
func (a *Installation) seedStored(ctx context.Context, name, from string) (*Volume, bool, error) {
	store, err := a.Images()
	if err != nil {
		return nil, false, err
	}
	found, err := packagesImage(ctx, store, from)
	if err != nil {
		return nil, false, err
	}
	if err := checkHolds(ctx, store, found.ID, image.StorePath); err != nil {
		return nil, false, err
	}
	if v, err := a.storedVolume(ctx, name); err == nil && v.ImageID == found.ID {
		return v, false, nil
	}
	if err := store.Tag(ctx, found.ID, volumeImage(name)); err != nil {
		return nil, false, err
	}
	v, err := a.storedVolume(ctx, name)
	return v, true, err
}

// packagesImage returns the image to take; "" is the newest store of packages. One that
// is not there is pulled.
func packagesImage(ctx context.Context, store *rootfs.Store, from string) (*rootfs.Image, error) {
	if from != "" {
		found, err := store.Find(ctx, from)
		if errors.Is(err, rootfs.ErrNoImage) {
			return store.Pull(ctx, from, rootfs.AddOptions{})
		}
		return found, err
	}
	all, err := store.List(ctx) // the newest first
	if err != nil {
		return nil, err
	}
	for _, found := range all {
		if found.Config.Labels[image.LabelLockfile] != "" {
			return found, nil
		}
	}
	return nil, errhint.With(errors.New("no store of packages was built"), "build one with `atoll images build pnpm-store --lockfile pnpm-lock.yaml --backend linux`, or name one with --from")
}

// checkHolds wants an image that has a directory of that path.
func checkHolds(ctx context.Context, store *rootfs.Store, ref, path string) error {
	_, pin, err := store.Resolve(ctx, ref, rootfs.Identity{})
	if err != nil {
		return err
	}
	defer pin.Release()
	if _, err := pin.Directory(ref, path); err != nil {
		return errhint.With(err, "name an image of a store of packages, as `atoll images build pnpm-store` makes it")
	}
	return nil
}

// removeStored takes the name of a volume from its image. What sandboxes stand on stays
// until they are gone.
func (a *Installation) removeStored(ctx context.Context, name string) error {
	v, err := a.storedVolume(ctx, name)
	if errors.Is(err, sandbox.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(v.UsedBy) > 0 {
		return errhint.With(fmt.Errorf("volume %q: %w", name, sandbox.ErrBusy), "end what uses it first: `atoll sandbox list`")
	}
	store, err := a.Images()
	if err != nil {
		return err
	}
	_, err = store.Remove(ctx, volumeImage(name))
	return err
}
