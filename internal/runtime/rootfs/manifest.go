package rootfs

import (
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/errhint"
)

var (
	// ErrForeign means that a layer is to be fetched from a place that the image
	// names, which could be any: only its own registry or archive is asked.
	ErrForeign = errors.New("is kept elsewhere than the image")
	// ErrNoLayers means that there is nothing in it that a root could be made of.
	ErrNoLayers = errors.New("not an image of files")
)

// checkManifest refuses what would make us read without end, or elsewhere,
// before anything of it is asked for.
func (s *Store) checkManifest(m *v1.Manifest) error {
	if m.Config.Size < 0 || m.Config.Size > s.Limits.Document {
		return fmt.Errorf("configuration of %d bytes: %w: %d bytes", m.Config.Size, ErrTooMuch, s.Limits.Document)
	}
	if len(m.Layers) == 0 {
		return fmt.Errorf("no layers: %w", ErrNoLayers)
	}
	if len(m.Layers) > s.Limits.Layers {
		return fmt.Errorf("%w: %d layers", ErrTooMuch, s.Limits.Layers)
	}
	for i, l := range m.Layers {
		if err := s.checkLayer(l); err != nil {
			return fmt.Errorf("layer %d of %d: %w", i+1, len(m.Layers), err)
		}
	}
	return nil
}

func (s *Store) checkLayer(l v1.Descriptor) error {
	switch {
	case l.Size < 0 || l.Size > s.Limits.Size:
		return fmt.Errorf("%d bytes: %w: %d bytes", l.Size, ErrTooMuch, s.Limits.Size)
	case len(l.URLs) > 0 || !l.MediaType.IsDistributable():
		return errhint.With(ErrForeign, "make an image that has all of its layers, for example with `docker build` on top of it, and take that")
	case l.MediaType != "" && !l.MediaType.IsLayer():
		return errhint.With(fmt.Errorf("%.200q: %w", l.MediaType, ErrNoLayers), "choose a container image, not a chart, a signature or another artifact")
	}
	return nil
}
