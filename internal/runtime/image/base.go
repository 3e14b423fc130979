package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/images"
	"github.com/atoll-run/atoll/internal/errhint"
)

// LocalBase is the reference of the base that is made from Debian's packages
// where the usual one cannot be had.
const LocalBase = "atoll-base:bookworm"

const (
	// pullStall is how long a registry may be silent. Without a network an
	// engine may try for minutes before it admits it.
	pullStall = 30 * time.Second
	// rootfsTimeout is how long packages may take.
	rootfsTimeout = 15 * time.Minute
	// rootfsGrace is how long the script may clean up after it was told to stop.
	rootfsGrace = 10 * time.Second
)

// provide makes sure that the engine holds base, and returns the reference to
// build on: base itself, or LocalBase in place of the usual Debian.
func (b *builder) provide(ctx context.Context, base string) (string, error) {
	held, err := b.engine.HasImage(ctx, base)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", base, err)
	}
	if held {
		return base, nil
	}
	if i := slices.IndexFunc(Recipes(), func(r Recipe) bool { return r.Target == base }); i >= 0 {
		b.printf("%s is not there yet: building it first", base)
		return b.build(ctx, Recipes()[i], Options{})
	}
	b.printf("pulling %s", base)
	err = b.pull(ctx, base)
	if err == nil {
		return base, nil
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	err = fmt.Errorf("image %s: cannot be pulled: %w", base, err)
	if !isUsualDebian(base) {
		return "", errhint.With(err, "pull or import it into the engine, or choose another base with --base-image")
	}
	return b.provideLocal(ctx, err)
}

// isUsualDebian reports whether base is what recipes build on by default, which
// alone may be replaced: what a user asked for is never exchanged.
func isUsualDebian(base string) bool {
	for _, r := range Recipes() {
		if defaults, err := r.Defaults(); err == nil && defaults[ArgBaseImage] == base {
			return true
		}
	}
	return false
}

// pull gives up when the registry stays silent.
func (b *builder) pull(ctx context.Context, ref string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(pullStall, func() { cancel(fmt.Errorf("no answer for %v", pullStall)) })
	defer silence.Stop()
	err := b.engine.Pull(ctx, ref, writerFunc(func(p []byte) (int, error) {
		silence.Reset(pullStall)
		return b.progress.Write(p)
	}))
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (b *builder) provideLocal(ctx context.Context, reason error) (string, error) {
	b.printf("WARNING: %v", reason)
	held, err := b.engine.HasImage(ctx, LocalBase)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", LocalBase, err)
	}
	if held {
		b.printf("WARNING: using %s instead, made earlier from Debian's packages", LocalBase)
		return LocalBase, nil
	}
	b.printf("WARNING: making %s from Debian's packages instead: not the pinned image, but today's packages", LocalBase)
	if err := b.importScript(ctx, "base/rootfs.sh", LocalBase); err != nil {
		hint := "let the engine reach a registry, or install mmdebstrap and let this machine reach Debian's packages"
		return "", errhint.With(errors.Join(reason, fmt.Errorf("image %s: %w", LocalBase, err)), hint)
	}
	return LocalBase, nil
}

// importScript runs a script that writes a root file system, straight into
// the engine. When the script fails the engine's import fails too, so that half
// a system never gets a name.
func (b *builder) importScript(ctx context.Context, path, ref string, env ...string) error {
	script, err := fs.ReadFile(images.Files, path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rootfsTimeout)
	defer cancel()
	rootfs, out := io.Pipe()
	messages := &lastLines{Writer: b.progress}
	cmd := exec.CommandContext(ctx, "sh", "-c", string(script))
	cmd.Stdout, cmd.Stderr, cmd.Env = out, messages, append(os.Environ(), env...)
	// A request first, because mmdebstrap has mounts and files to take away.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = rootfsGrace
	if err := cmd.Start(); err != nil {
		return err
	}
	scripted := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, messages.last())
		}
		_ = out.CloseWithError(err) // never fails
		scripted <- err
	}()
	imported := b.engine.Import(ctx, rootfs, ref)
	_ = rootfs.CloseWithError(errors.New("import ended")) // lets the script's writes fail instead of wait
	return errors.Join(imported, <-scripted)
}
