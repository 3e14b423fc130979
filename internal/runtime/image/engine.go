package image

import (
	"context"
	"io"
)

// An Engine keeps images and builds them. References are as a person writes
// them ("openclaw-sandbox:bookworm-slim"); an engine that stores short names
// under a prefix of its own still finds them by the short name.
//
// Progress is text for a person; it may be io.Discard, never nil.
type Engine interface {
	// HasImage reports whether the engine holds ref. It asks no registry.
	HasImage(ctx context.Context, ref string) (bool, error)
	// Pull fetches ref from its registry.
	Pull(ctx context.Context, ref string, progress io.Writer) error
	// Import makes a one-layer image from the tar of a root file system.
	Import(ctx context.Context, rootfs io.Reader, ref string) error
	// Build runs a Dockerfile on a context given as a tar. When a step fails,
	// the error holds the step's own message, and opts.Tag still names what it
	// named before.
	Build(ctx context.Context, contextTar io.Reader, opts BuildOptions, progress io.Writer) error
	// ImageUser returns the user that ref's containers run as; "" is root.
	ImageUser(ctx context.Context, ref string) (string, error)
}

// BuildOptions say what Engine.Build makes of a context.
type BuildOptions struct {
	Tag        string            // reference of the result
	Dockerfile string            // its path inside the context
	Args       map[string]string // build arguments
	Labels     map[string]string // labels of the result
	Network    string            // network of the build's steps; "" is the engine's default
}
