package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moby/moby/api/types/build"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"

	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/sandbox"
)

var _ image.Engine = (*Runtime)(nil)

// HasImage reports whether the engine holds ref.
func (r *Runtime) HasImage(ctx context.Context, ref string) (bool, error) {
	_, err := r.inspectImage(ctx, ref)
	if errors.Is(err, sandbox.ErrNoImage) {
		return false, nil
	}
	return err == nil, err
}

// ImageUser returns the user that ref's containers run as; "" is root.
func (r *Runtime) ImageUser(ctx context.Context, ref string) (string, error) {
	found, err := r.inspectImage(ctx, ref)
	return found.user, err
}

// ImageID returns the id of the image that ref names now.
func (r *Runtime) ImageID(ctx context.Context, ref string) (string, error) {
	found, err := r.inspectImage(ctx, ref)
	return found.id, err
}

// Pull fetches ref from its registry.
func (r *Runtime) Pull(ctx context.Context, ref string, progress io.Writer) error {
	answer, err := ask(ctx, r.engine, func(c *client.Client) (client.ImagePullResponse, error) {
		return c.ImagePull(ctx, ref, client.ImagePullOptions{})
	})
	if err == nil {
		err = r.follow(answer, progress)
	}
	if err != nil {
		return fmt.Errorf("pull of %s: %w", ref, err)
	}
	return nil
}

// Import makes a one-layer image from the tar of a root file system.
func (r *Runtime) Import(ctx context.Context, rootfs io.Reader, ref string) error {
	answer, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageImportResult, error) {
		return c.ImageImport(ctx, client.ImageImportSource{Source: rootfs, SourceName: "-"}, ref, client.ImageImportOptions{})
	})
	if err == nil {
		err = r.follow(answer, io.Discard)
	}
	if err != nil {
		return fmt.Errorf("import of %s: %w", ref, err)
	}
	return nil
}

// Build runs a Dockerfile with the engine's classic builder, which every engine
// has and which needs no session with us.
func (r *Runtime) Build(ctx context.Context, contextTar io.Reader, opts image.BuildOptions, progress io.Writer) error {
	args := map[string]*string{}
	for name, value := range opts.Args {
		args[name] = &value
	}
	answer, err := ask(ctx, r.engine, func(c *client.Client) (client.ImageBuildResult, error) {
		return c.ImageBuild(ctx, contextTar, client.ImageBuildOptions{
			Tags: []string{opts.Tag}, Dockerfile: opts.Dockerfile, BuildArgs: args, Labels: opts.Labels,
			NetworkMode: opts.Network, Version: build.BuilderV1, Remove: true, ForceRemove: true,
		})
	})
	if err == nil {
		err = r.follow(answer.Body, progress)
	}
	if err != nil {
		return fmt.Errorf("build of %s: %w", opts.Tag, err)
	}
	return nil
}

// report is one line of what an engine tells while it works on an image.
type report struct {
	jsonstream.Message
	OldError string `json:"error"` // some engines send no other
}

// follow copies an engine's report to a person, and returns the error in it:
// the call itself succeeded long before the work did.
func (r *Runtime) follow(answer io.ReadCloser, progress io.Writer) error {
	defer answer.Close()
	lines := json.NewDecoder(answer)
	for {
		var line report
		err := lines.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return r.engine.explain(err)
		case line.Error != nil:
			return errors.New(strings.TrimSpace(line.Error.Message))
		case line.OldError != "":
			return errors.New(strings.TrimSpace(line.OldError))
		}
		if _, err := io.WriteString(progress, readable(line.Message)); err != nil {
			return err
		}
	}
}

// readable is a line of the report for a person. Bars that fill up are left
// out: they are for terminals, and their ends are lines of their own.
func readable(line jsonstream.Message) string {
	switch {
	case line.Stream != "":
		return line.Stream
	case line.Status == "" || line.Progress != nil && line.Progress.Total > 0:
		return ""
	case line.ID != "":
		return line.ID + ": " + line.Status + "\n"
	}
	return line.Status + "\n"
}
