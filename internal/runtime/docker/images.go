package docker

import (
	"context"
	"fmt"

	"github.com/moby/moby/client"
)

// imageFacts are what of an image decides how its container is made.
type imageFacts struct {
	id   string
	arch string // as Go names it
	user string // "" is root
}

// inspectImage finds an image that the engine holds; ErrNoImage if it does not.
func (r *Runtime) inspectImage(ctx context.Context, ref string) (imageFacts, error) {
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageInspectResult, error) {
		return c.ImageInspect(ctx, ref)
	})
	if isNotFound(err) {
		return imageFacts{}, noImage(ref)
	}
	if err != nil {
		return imageFacts{}, fmt.Errorf("image %s: %w", ref, err)
	}
	facts := imageFacts{id: found.ID, arch: found.Architecture}
	if found.Config != nil {
		facts.user = found.Config.User
	}
	return facts, nil
}
