package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
)

// ImageInfo is what the engine says about an image.
type ImageInfo struct {
	ID              string
	Tags, Digests   []string
	Created         time.Time
	Size            int64
	Arch, OS        string
	User, Workdir   string
	StopSignal      string
	Env             []string
	Entrypoint, Cmd []string
	Labels          map[string]string
	Layers          []string
}

// ImageInfo describes one image that the engine holds; ErrNoImage if it does not.
func (r *Runtime) ImageInfo(ctx context.Context, ref string) (*ImageInfo, error) {
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageInspectResult, error) {
		return c.ImageInspect(ctx, ref)
	})
	if isNotFound(err) {
		return nil, noImage(ref)
	}
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	made, _ := time.Parse(time.RFC3339Nano, found.Created)
	info := &ImageInfo{
		ID: found.ID, Tags: found.RepoTags, Digests: found.RepoDigests, Created: made, Size: found.Size, Arch: found.Architecture, OS: found.Os,
		Layers: found.RootFS.Layers,
	}
	if c := found.Config; c != nil {
		info.User, info.Workdir, info.StopSignal, info.Env = c.User, c.WorkingDir, c.StopSignal, c.Env
		info.Entrypoint, info.Cmd, info.Labels = c.Entrypoint, c.Cmd, c.Labels
	}
	return info, nil
}

// ImageList is every image that the engine holds, in few words.
func (r *Runtime) ImageList(ctx context.Context) ([]*ImageInfo, error) {
	found, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageListResult, error) {
		return c.ImageList(ctx, client.ImageListOptions{})
	})
	if err != nil {
		return nil, fmt.Errorf("list of images: %w", err)
	}
	list := make([]*ImageInfo, 0, len(found.Items))
	for _, item := range found.Items {
		list = append(list, summaryOf(item))
	}
	return list, nil
}

func summaryOf(i image.Summary) *ImageInfo {
	return &ImageInfo{ID: i.ID, Tags: i.RepoTags, Digests: i.RepoDigests, Created: time.Unix(i.Created, 0), Size: i.Size, Labels: i.Labels}
}

// ImageTag gives an image another name.
func (r *Runtime) ImageTag(ctx context.Context, ref, name string) error {
	_, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageTagResult, error) {
		return c.ImageTag(ctx, client.ImageTagOptions{Source: ref, Target: name})
	})
	if isNotFound(err) {
		return noImage(ref)
	}
	return err
}
