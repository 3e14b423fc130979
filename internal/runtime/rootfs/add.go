package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/atoll-run/atoll/internal/errhint"
)

// blob is a layer as its source keeps it, compressed or not.
type blob struct {
	digest string // of the blob; "" if the source checks it itself or has none
	size   int64  // of the blob, for progress; 0 if unknown
	open   func(context.Context) (io.ReadCloser, error)
}

// candidate is an image on its way into the store.
type candidate struct {
	id     string // digest of the configuration; its layers' digests are in there
	digest string // of the manifest
	source string
	config *v1.ConfigFile
	layers []blob // the lowest first
	onHost bool   // below its layers are the host's own programs
}

// Progress is how far an image has come.
type Progress struct {
	Layers, LayersDone int
	Bytes, BytesDone   int64 // of the source; Bytes is 0 if that is not known
}

// parallelLayers is how many layers are unpacked at once.
const parallelLayers = 3

// add puts a candidate into the store under names. An image that is there
// already only gets the names.
func (s *Store) add(ctx context.Context, c *candidate, names []string, report func(Progress)) (*Image, error) {
	if err := s.check(c); err != nil {
		return nil, err
	}
	// What a killed process left may be as large as what comes now. Whatever
	// keeps it from being removed is no reason not to add an image.
	_, _ = s.Collect(ctx, nil)
	content, err := s.locks.Share(ctx, contentLock)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	defer content.Release()
	// Concurrent adds of one image: the first unpacks, the rest reuse.
	alone, err := s.locks.Hold(ctx, "image:"+c.id)
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	defer alone.Release()
	layers, err := s.unpackAll(ctx, c, report)
	if err != nil {
		return nil, spaceHint(s.dir, err)
	}
	image := &Image{ID: c.id, Names: names, Digest: c.digest, Source: c.source, OnHost: c.onHost, Layers: layers, Added: time.Now().UTC().Truncate(time.Second), Config: configOf(c.config)}
	for _, l := range layers {
		image.Size += l.Size
		image.Files += l.Files
	}
	return image, s.change(ctx, func(x *index) error { return x.put(image) })
}

func spaceHint(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return errhint.With(err, "free space on the disk of "+dir+", for example with `atoll images rm`")
	}
	return err
}

// check refuses what cannot be a root for sandboxes here.
func (s *Store) check(c *candidate) error {
	digests := c.config.RootFS.DiffIDs
	switch {
	case len(c.layers) == 0:
		return fmt.Errorf("no layers: %w", ErrNoLayers)
	case len(c.layers) > s.Limits.Layers:
		return fmt.Errorf("%w: %d layers", ErrTooMuch, s.Limits.Layers)
	case len(digests) != len(c.layers):
		return fmt.Errorf("%d layers, but digests of %d: %w", len(c.layers), len(digests), ErrDigest)
	}
	for _, d := range digests {
		if d.Algorithm != "sha256" {
			return fmt.Errorf("layer %s: only sha256 digests are known here", d)
		}
	}
	if system, arch := c.config.OS, c.config.Architecture; system != "" && system != "linux" || arch != "" && arch != runtime.GOARCH {
		return errhint.With(fmt.Errorf("it is for %s/%s, this machine is linux/%s", system, arch, runtime.GOARCH), "choose an image for this machine")
	}
	return nil
}

// unpackAll brings the layers that the store lacks. None gets its name before
// all are complete and, as far as the disk is concerned, written.
func (s *Store) unpackAll(ctx context.Context, c *candidate, report func(Progress)) ([]Layer, error) {
	work := &unpackJob{store: s, candidate: c, report: report, layers: make([]Layer, len(c.layers)), temps: make([]string, len(c.layers))}
	defer work.clean()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLayers)
	for i := range c.layers {
		group.Go(func() error {
			if err := work.layer(ctx, i); err != nil {
				return fmt.Errorf("layer %d of %d: %w", i+1, len(c.layers), err)
			}
			work.done.Add(1)
			work.reportProgress()
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, l := range work.layers {
		work.layers[i].Opaque = work.layers[work.first(i)].Opaque || l.Opaque
	}
	return work.layers, work.publish()
}

// unpackJob is the unpacking of one image.
type unpackJob struct {
	store     *Store
	candidate *candidate
	report    func(Progress)
	reportMu  sync.Mutex // one report at a time
	layers    []Layer
	temps     []string // by layer, "" where the store has it
	usage     usage
	done      atomic.Int64
	bytes     atomic.Int64
}

func (w *unpackJob) clean() {
	for _, temp := range w.temps {
		if temp != "" {
			removeTree(temp)
		}
	}
}

func (w *unpackJob) reportProgress() {
	if w.report == nil {
		return
	}
	w.reportMu.Lock()
	defer w.reportMu.Unlock()
	p := Progress{Layers: len(w.layers), LayersDone: int(w.done.Load()), BytesDone: w.bytes.Load()}
	for _, l := range w.candidate.layers {
		p.Bytes += l.size
	}
	w.report(p)
}

// first is where in the image the layer of that number is for the first time.
func (w *unpackJob) first(i int) int {
	digests := w.candidate.config.RootFS.DiffIDs
	return slices.Index(digests, digests[i])
}

func (w *unpackJob) layer(ctx context.Context, i int) error {
	want := Layer{DiffID: w.candidate.config.RootFS.DiffIDs[i].String()}
	if w.store.hasLayer(want.name()) {
		w.bytes.Add(w.candidate.layers[i].size)
		return readJSON(filepath.Join(w.store.layer(want.name()), layerInfo), &w.layers[i])
	}
	// The same layer may be in an image twice.
	if w.first(i) < i {
		w.layers[i] = want
		return nil
	}
	var err error
	if w.temps[i], err = w.store.temporary(); err != nil {
		return err
	}
	got, err := w.unpack(ctx, w.candidate.layers[i], filepath.Join(w.temps[i], layerFiles))
	if err != nil {
		return err
	}
	if got.DiffID != want.DiffID {
		return fmt.Errorf("%w: %s instead of %s", ErrDigest, got.DiffID, want.DiffID)
	}
	w.layers[i] = got
	return writeJSON(w.temps[i], filepath.Join(w.temps[i], layerInfo), got, false)
}

// unpack writes one layer into a directory and says what it was.
func (w *unpackJob) unpack(ctx context.Context, b blob, dir string) (Layer, error) {
	stream, err := b.open(ctx)
	if err != nil {
		return Layer{}, err
	}
	defer stream.Close()
	content, err := w.store.openArchive(ctx, stream, &w.usage, w.seen)
	if err != nil {
		return Layer{}, err
	}
	defer content.close()
	root, err := os.Open(dir)
	if err != nil {
		return Layer{}, err
	}
	defer root.Close()
	layer, err := unpack(ctx, content, root, w.store.Limits, &w.usage)
	if err != nil {
		return Layer{}, err
	}
	// The blob may go on after what was compressed ends.
	if _, err := io.Copy(io.Discard, content.packed); err != nil {
		return Layer{}, truncated(err)
	}
	if b.digest != "" && content.packed.digest() != b.digest {
		return Layer{}, fmt.Errorf("%w: blob %s", ErrDigest, b.digest)
	}
	layer.DiffID = content.plain.digest()
	return layer, nil
}

// reportEvery is how many bytes pass between two reports.
const reportEvery = 1 << 20

func (w *unpackJob) seen(n int) {
	if now := w.bytes.Add(int64(n)); now/reportEvery != (now-int64(n))/reportEvery {
		w.reportProgress()
	}
}

// publish names the layers, after one wait for the disk.
func (w *unpackJob) publish() error {
	if err := w.store.sync(); err != nil {
		return err
	}
	for i, temp := range w.temps {
		if temp == "" {
			continue
		}
		if err := w.store.publish(temp, w.layers[i].name()); err != nil {
			return err
		}
	}
	return nil
}

// sync waits until everything that was written to the store is on its disk.
func (s *Store) sync() error {
	if s.Volatile {
		return nil
	}
	dir, err := os.Open(s.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Syncfs(int(dir.Fd()))
}

func configOf(c *v1.ConfigFile) Config {
	return Config{
		Env: c.Config.Env, User: c.Config.User, Workdir: c.Config.WorkingDir, Entrypoint: c.Config.Entrypoint, Cmd: c.Config.Cmd,
		StopSignal: c.Config.StopSignal, Labels: c.Config.Labels,
	}
}
