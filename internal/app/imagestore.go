package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
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
	alive, err := a.pinOwners(ctx)
	if err != nil {
		return rootfs.Collected{}, fmt.Errorf("which sandboxes stand on images: %w", err)
	}
	return store.Collect(ctx, func(owner string) bool { return alive[owner] })
}

// pinOwners are the sandboxes that keep layers, by name; earlier versions of
// Atoll wrote their ids.
func (a *App) pinOwners(ctx context.Context) (map[string]bool, error) {
	rt, err := a.runtimes.get(ctx, backendLinux)
	if err != nil {
		return nil, err
	}
	list, err := rt.List(ctx)
	if err != nil {
		return nil, err
	}
	owners := map[string]bool{}
	for _, s := range list {
		owners[s.Name], owners[s.ID] = true, true
	}
	return owners, nil
}

// tidyImages collects what is left of images, where there ever were any.
func (a *App) tidyImages(ctx context.Context) {
	if _, err := os.Stat(filepath.Join(a.Paths.AtollState, imageStore)); err != nil {
		return
	}
	if _, err := a.CollectImages(ctx); err != nil {
		a.logger.WarnContext(ctx, "images not collected", "error", err)
	}
}
