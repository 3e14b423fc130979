package rootfs

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"strings"
)

// maxForkedLayers is how many layers a root may have with those of forks on
// top. An overlay takes 500.
const maxForkedLayers = 300

// Fork returns a root with one more layer on top, for what a sandbox changed so
// far. The layer is not there yet: the caller pins the root, and then moves a
// directory to that place.
func (s *Store) Fork(root *Root) (*Root, error) {
	if len(root.Layers) >= maxForkedLayers {
		return nil, fmt.Errorf("%w: %d layers, after so many forks of forks", ErrTooMuch, maxForkedLayers)
	}
	forked := *root
	place := filepath.Join(s.layer(layerName("fork-"+strings.ToLower(rand.Text()))), layerFiles)
	forked.Layers = append([]string{place}, root.Layers...)
	return &forked, nil
}

// PinRoot makes a durable pin of a root whose layers another pin keeps.
// There is no wait for the disk: file systems keep the order of names, so after
// a power cut the pin is there if the layer is; should its content be lost, it
// cannot be read, and then nothing is collected.
func (s *Store) PinRoot(ctx context.Context, owner string, root *Root) error {
	path, err := s.pinPath(owner)
	if err != nil {
		return err
	}
	p := pinned{ID: root.ID, Name: root.Name}
	for _, layer := range root.Layers {
		rel, err := filepath.Rel(s.path("layers"), layer)
		name, rest, _ := strings.Cut(rel, "/")
		if err != nil || rest != layerFiles || name == ".." {
			return fmt.Errorf("pin: %s is no layer of this store", layer)
		}
		p.Layers = append(p.Layers, layerName(name))
	}
	held, err := s.locks.Share(ctx, contentLock) // or a collector might take it on its way
	if err != nil {
		return fmt.Errorf("pin: %w", err)
	}
	defer held.Release()
	return writeJSON(s.path("tmp"), path, p, false)
}
