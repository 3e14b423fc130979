package docker

import (
	"context"
	"fmt"
	"io"

	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/errhint"
)

// Save returns an image as the archive that `docker save` writes.
func (r *Runtime) Save(ctx context.Context, ref string) (io.ReadCloser, error) {
	if _, err := r.inspectImage(ctx, ref); err != nil {
		return nil, errhint.With(fmt.Errorf("image %s: %w", ref, err), "build it with atoll images build, or pull it with the engine")
	}
	saved, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageSaveResult, error) {
		return c.ImageSave(ctx, []string{ref})
	})
	if err != nil {
		return nil, fmt.Errorf("save of %s: %w", ref, err)
	}
	return saved, nil
}
