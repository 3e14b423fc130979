package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/errhint"
)

// provideOpenClaw makes sure that the engine holds the published image of
// OpenClaw. Where it cannot be pulled, the usual one is made from npm, under the
// same reference: what is built on it is the same wherever it is built.
func (b *builder) provideOpenClaw(ctx context.Context, ref string) error {
	if ref == "" {
		return nil // the recipe has no use for it
	}
	held, err := b.engine.HasImage(ctx, ref)
	if err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	if held {
		return nil
	}
	b.printf("pulling %s", ref)
	if err = b.pull(ctx, ref); err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err = fmt.Errorf("image %s: cannot be pulled: %w", ref, err)
	if !isUsualOpenClaw(ref) {
		return errhint.With(err, "pull or import it into the engine, or choose another with --openclaw-base")
	}
	b.printf("WARNING: %v", err)
	b.printf("WARNING: making it from npm instead, under the same name")
	if made := b.importScript(ctx, "openclaw/base.sh", ref, "VERSION="+tagOf(ref)); made != nil {
		hint := "let the engine reach the registry of images, or install npm and let this machine reach npm's"
		return errhint.With(errors.Join(err, fmt.Errorf("OpenClaw from npm: %w", made)), hint)
	}
	return nil
}

// isUsualOpenClaw reports whether ref is the recipe's own, which alone may be
// made from npm: what a user asked for is never exchanged.
func isUsualOpenClaw(ref string) bool {
	for _, r := range Recipes() {
		if defaults, err := r.Defaults(); err == nil && defaults[ArgOpenClawBase] == ref {
			return true
		}
	}
	return false
}

func tagOf(ref string) string { return ref[strings.LastIndex(ref, ":")+1:] }
