package containers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/atoll-run/atoll/internal/dockercli"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox/provide"
)

// The images of the docker front end are those of Atoll's own store, and after
// them those of an engine, where one may be used and answers.

// sources are where images may be: nil for what is not to be asked.
type sources struct {
	store  *rootfs.Store
	engine *provide.ContainerEngine
}

func (b *Sandboxes) sources(ctx context.Context) (s sources, err error) {
	in, err := b.use(ctx)
	if err != nil {
		return s, err
	}
	agent, err := in.Config.Resolve(in.Config.DefaultAgent())
	if err != nil {
		return s, err
	}
	backend := agent.Sandbox.Backend
	if backend != provide.BackendDocker && backend != provide.BackendPodman {
		if s.store, err = in.Images(); err != nil {
			return s, err
		}
	}
	switch {
	case backend == provide.BackendAuto && provide.ProbeEngine(in.EngineHost(provide.BackendDocker)) == nil:
		s.engine, err = in.Engine(ctx, provide.BackendDocker)
	case s.store == nil:
		s.engine, err = in.Engine(ctx, backend)
	}
	return s, err
}

// Image describes an image.
func (b *Sandboxes) Image(ctx context.Context, ref string) (*dockercli.Image, error) {
	s, err := b.sources(ctx)
	if err != nil {
		return nil, err
	}
	if s.store != nil {
		found, err := s.store.Find(ctx, ref)
		if err == nil {
			return storedImage(found), nil
		}
		if !errors.Is(err, rootfs.ErrNoImage) {
			return nil, err
		}
	}
	if s.engine == nil {
		return nil, fmt.Errorf("image %s: %w", ref, dockercli.ErrNoImage)
	}
	found, err := s.engine.ImageInfo(ctx, ref)
	if err != nil {
		return nil, asDocker(err)
	}
	return engineImage(found), nil
}

func storedImage(i *rootfs.Image) *dockercli.Image {
	image := &dockercli.Image{
		ID: i.ID, Tags: i.Names, Created: i.Added.UTC().Format(time.RFC3339Nano), Size: i.Size, Arch: runtime.GOARCH, OS: "linux",
		User: i.Config.User, Workdir: i.Config.Workdir, Env: i.Config.Env, Entrypoint: i.Config.Entrypoint, Cmd: i.Config.Cmd,
		Labels: i.Config.Labels, StopSignal: i.Config.StopSignal,
	}
	for _, layer := range i.Layers {
		image.Layers = append(image.Layers, layer.DiffID)
	}
	return image
}

func engineImage(i *provide.EngineImage) *dockercli.Image {
	return &dockercli.Image{
		ID: i.ID, Tags: i.Tags, Digests: i.Digests, Created: i.Created.UTC().Format(time.RFC3339Nano), Size: i.Size, Arch: i.Arch, OS: i.OS,
		User: i.User, Workdir: i.Workdir, Env: i.Env, Entrypoint: i.Entrypoint, Cmd: i.Cmd, Labels: i.Labels, StopSignal: i.StopSignal, Layers: i.Layers,
	}
}

// Images lists the images there are.
func (b *Sandboxes) Images(ctx context.Context) ([]*dockercli.Image, error) {
	s, err := b.sources(ctx)
	if err != nil {
		return nil, err
	}
	var images []*dockercli.Image
	if s.store != nil {
		list, err := s.store.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			images = append(images, storedImage(i))
		}
	}
	if s.engine != nil {
		list, err := s.engine.ImageList(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			images = append(images, engineImage(i))
		}
	}
	return images, nil
}

// Pull fetches an image: into the store where that is used, else by the engine.
func (b *Sandboxes) Pull(ctx context.Context, ref string, progress func(string)) error {
	s, err := b.sources(ctx)
	if err != nil {
		return err
	}
	if s.store == nil {
		return s.engine.Pull(ctx, ref, lineWriter(progress))
	}
	image, err := s.store.Pull(ctx, ref, rootfs.AddOptions{})
	if err != nil {
		return err
	}
	progress("Status: Downloaded newer image for " + ref + " (" + image.ID + ")")
	return nil
}

// lineWriter passes whole lines on.
type lineWriter func(string)

func (w lineWriter) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		w(string(bytes.TrimRight(line, "\r\n")))
	}
	return len(p), nil
}

// Tag gives an image another name, where the image is.
func (b *Sandboxes) Tag(ctx context.Context, ref, name string) error {
	s, err := b.sources(ctx)
	if err != nil {
		return err
	}
	if s.store != nil {
		if err := s.store.Tag(ctx, ref, name); !errors.Is(err, rootfs.ErrNoImage) || s.engine == nil {
			return asStoreError(err)
		}
	}
	return asDocker(s.engine.ImageTag(ctx, ref, name))
}

func asStoreError(err error) error {
	if errors.Is(err, rootfs.ErrNoImage) {
		return &alsoIs{err, dockercli.ErrNoImage}
	}
	return err
}
