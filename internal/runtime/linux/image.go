package linux

import (
	"context"
	"errors"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// imageFinder finds the image of a reference; rootfs.Store implements it.
type imageFinder interface {
	Find(ctx context.Context, ref string) (*rootfs.Image, error)
}

var _ sandbox.ImageResolver = (*Runtime)(nil)

// ImageID returns the id of the image that ref names now; "" for the host's own programs,
// which every sandbox sees as they are.
func (r *Runtime) ImageID(ctx context.Context, ref string) (string, error) {
	images, ok := r.options.Roots.(imageFinder)
	if !ok || IsHostImage(ref) {
		return "", nil
	}
	found, err := images.Find(ctx, ref)
	if errors.Is(err, rootfs.ErrNoImage) {
		return "", noImage(ref)
	}
	if err != nil {
		return "", err
	}
	return found.ID, nil
}
