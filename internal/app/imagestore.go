package app

import (
	"context"

	"github.com/atoll-run/atoll/internal/rootfs"
)

// Images is the store of the images that need no engine.
func (a *App) Images() (*rootfs.Store, error) { return a.images() }

// ImportFromEngine copies an image of a container engine into the store.
func (a *App) ImportFromEngine(ctx context.Context, backend, ref string, o rootfs.AddOptions) ([]*rootfs.Image, error) {
	store, err := a.Images()
	if err != nil {
		return nil, err
	}
	engine, err := a.runtimes.docker(ctx, backend)
	if err != nil {
		return nil, err
	}
	saved, err := engine.Save(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer saved.Close()
	if o.Name == "" {
		o.Name = ref
	}
	images, err := store.ImportFrom(ctx, saved, backend+" image "+ref, o)
	if err != nil {
		return nil, err
	}
	return images, nil
}

// CollectImages removes the layers that no image has and no sandbox stands on.
func (a *App) CollectImages(ctx context.Context) (rootfs.Collected, error) {
	store, err := a.Images()
	if err != nil {
		return rootfs.Collected{}, err
	}
	return store.Collect(ctx, nil)
}
