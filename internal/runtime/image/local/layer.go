package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/runtime/image"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// searchPath is where programs of a base are, besides those of layers.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// build returns the image of a layer, made if it is not there.
func (b *Builder) build(ctx context.Context, l *layer) (_ *Result, err error) {
	baseID, err := b.baseID(ctx, l.base)
	if err != nil {
		return nil, err
	}
	key := l.key(baseID)
	found, err := b.find(ctx, key, l.names)
	if err != nil || found != nil {
		return &Result{Image: found, Recipe: l.recipe}, err
	}
	if l.fetch != nil {
		if err := l.fetch(ctx); err != nil {
			return nil, spaceHint(b.Dir, err)
		}
	}
	b.report("building %s", l.names[0])
	made, err := b.make(ctx, l, key)
	if err != nil {
		return nil, spaceHint(b.Dir, fmt.Errorf("image %s: %w", l.names[0], err))
	}
	return &Result{Image: made, Built: true, Recipe: l.recipe}, nil
}

// make runs the layer's script and adds what it wrote to the store.
func (b *Builder) make(ctx context.Context, l *layer, key string) (*rootfs.Image, error) {
	dir, err := os.MkdirTemp(b.Dir, stepPrefix)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	step := &Step{Name: "atoll-image-" + key[:16], Image: l.base, Inputs: filepath.Join(dir, "inputs"), Work: filepath.Join(dir, "work"), Dest: l.dest, Env: l.environment(b.pathOf(ctx, l.base))}
	if err := errors.Join(l.writeInputs(step.Inputs), os.Mkdir(step.Work, 0o755)); err != nil {
		return nil, err
	}
	labels := image.Labels(l.recipe, nil)
	labels[LabelKey] = key
	maps.Copy(labels, l.labels)
	base := l.base
	if l.alone {
		base = ""
	}
	return b.add(ctx, step, l, rootfs.LayerOptions{Base: base, Names: l.names, Source: l.source, Labels: labels, Env: l.imageEnv(b.pathOf(ctx, l.base)), User: l.user})
}

// stepPrefix begins the names of directories that exist during a step only.
const stepPrefix = "step-"

// add takes the archive of a step into the store while the step writes it. The store
// keeps nothing of a step that fails.
func (b *Builder) add(ctx context.Context, step *Step, l *layer, o rootfs.LayerOptions) (*rootfs.Image, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	raw, rawIn := io.Pipe()
	placed, placedIn := io.Pipe()
	step.Stdout, step.Stderr = rawIn, lineWriter(func(line string) { b.report("  %s", line) })
	ran := make(chan error, 1)
	go func() {
		err := b.Run(ctx, step)
		_ = rawIn.CloseWithError(errOr(err, io.EOF))
		ran <- err
	}()
	go func() {
		err := place(placedIn, raw, l.prefix(), l.extras())
		_ = raw.CloseWithError(errOr(err, io.ErrClosedPipe))
		_ = placedIn.CloseWithError(errOr(err, io.EOF))
	}()
	made, err := b.Store.AddLayer(ctx, placed, o)
	if err != nil {
		cancel(err)
		_ = placed.CloseWithError(err)
	}
	if failed := <-ran; failed != nil && (err == nil || !errors.Is(failed, context.Canceled)) {
		return nil, failed
	}
	return made, err
}

// prefix is where in the image the content of the step's directory is.
func (l *layer) prefix() string {
	if l.isRoot {
		return ""
	}
	return strings.TrimPrefix(l.dest, "/")
}

func errOr(err, other error) error {
	if err == nil {
		return other
	}
	return err
}

// writeInputs makes the directory that the sandbox reads.
func (l *layer) writeInputs(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "packages"), 0o755); err != nil {
		return err
	}
	texts := map[string][]byte{"script": []byte(l.script), "list": l.list}
	maps.Copy(texts, l.inputs)
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	for name, source := range l.files {
		if err := os.Link(source, filepath.Join(dir, "packages", name)); err != nil {
			return err
		}
	}
	return nil
}

func (l *layer) environment(basePath string) map[string]string {
	env := map[string]string{"DEST": l.dest, "PATH": basePath, "LANG": "C.UTF-8"}
	maps.Copy(env, l.env)
	return env
}

// imageEnv has programs of the layer found before those of the base.
func (l *layer) imageEnv(basePath string) []string {
	if len(l.commands) == 0 {
		return nil
	}
	return []string{"PATH=" + path.Join(l.dest, "bin") + ":" + basePath}
}

// pathOf returns the search path of a base.
func (b *Builder) pathOf(ctx context.Context, base string) string {
	if found, err := b.Store.Find(ctx, base); err == nil && !rootfs.IsHost(base) {
		if own := found.Config.SearchPath(); own != "" {
			return own
		}
	}
	return searchPath
}

// extras are the files beside the content: links to the layer's commands in the
// directory where the base has its own, which login shells search, and texts. The
// host's directory is the host's.
func (l *layer) extras() (all []extra) {
	for _, command := range l.commands {
		if !l.onHost && !l.alone {
			all = append(all, extra{name: path.Join("usr/local/bin", command), to: path.Join(l.dest, "bin", command)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.texts)) {
		all = append(all, extra{name: name, text: l.texts[name]})
	}
	return all
}

func spaceHint(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || strings.Contains(err.Error(), "No space left on device") {
		return errhint.With(err, "free space on the disk of "+dir+", for example with `atoll images rm`, and run the same command again; what was fetched is kept")
	}
	return err
}

// lineWriter calls a function with each line that is written to it.
type lineWriter func(line string)

func (f lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimSpace(line); line != "" {
			f(line)
		}
	}
	return len(p), nil
}
