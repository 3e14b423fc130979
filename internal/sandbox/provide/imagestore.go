package provide

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// Images is the store of the images that need no engine.
func (s *Settings) Images() (*rootfs.Store, error) { return s.images() }

// ImportFromEngine copies an image of a container engine into the store.
func (a *Installation) ImportFromEngine(ctx context.Context, backend, ref string, o rootfs.AddOptions) ([]*rootfs.Image, error) {
	store, err := a.Images()
	if err != nil {
		return nil, err
	}
	engine, err := a.Engine(ctx, backend)
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
func (a *Installation) CollectImages(ctx context.Context) (rootfs.Collected, error) {
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
func (a *Installation) pinOwners(ctx context.Context) (map[string]bool, error) {
	rt, err := a.Runtime(ctx, BackendLinux)
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
func (a *Installation) tidyImages(ctx context.Context) {
	if _, err := os.Stat(filepath.Join(a.Paths.AtollState, imageStore)); err != nil {
		return
	}
	if _, err := a.CollectImages(ctx); err != nil {
		a.Logger.WarnContext(ctx, "images not collected", "error", err)
	}
}
