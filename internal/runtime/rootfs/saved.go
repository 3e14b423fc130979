package rootfs

import (
	"bytes"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/lazyregexp"
)

// savedManifest is the part of a `docker save` archive that lists its images.
const savedManifest = "manifest.json"

// saved is one image of such an archive.
type saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// listSaved returns the images of such an archive. The archive of a root
// directory may happen to have a file of that name: then there are none.
func (s *Store) listSaved(on imageSource) ([]saved, error) {
	if !has(on, savedManifest) {
		return nil, nil
	}
	data, err := document(on, savedManifest, "", s.Limits.Document)
	if err != nil {
		return nil, err
	}
	var list []saved
	if json.Unmarshal(data, &list) != nil {
		return nil, nil
	}
	for _, image := range list {
		if image.Config == "" || !has(on, image.Config) {
			return nil, nil
		}
	}
	return list, nil
}

func (s *Store) readSaved(on imageSource, list []saved, source string) ([]named, error) {
	var found []named
	for _, image := range list {
		c, err := s.fromSaved(on, image)
		if err != nil {
			return nil, err
		}
		c.source = source
		if len(image.RepoTags) > s.Limits.Tags {
			return nil, fmt.Errorf("%w: %d names", ErrTooMuch, s.Limits.Tags)
		}
		found = append(found, named{c, image.RepoTags})
		if len(found) > s.Limits.Layers {
			return nil, fmt.Errorf("%w: %d images in one archive", ErrTooMuch, s.Limits.Layers)
		}
	}
	return found, nil
}

// namedByDigest is how a configuration is named: by its own digest.
var namedByDigest = lazyregexp.New(`(?:^|/)([0-9a-f]{64})(?:\.json)?$`)

func (s *Store) fromSaved(on imageSource, image saved) (*candidate, error) {
	data, err := document(on, image.Config, "", s.Limits.Document)
	if err != nil {
		return nil, err
	}
	c := &candidate{id: digestOf(data)}
	if m := namedByDigest.FindStringSubmatch(image.Config); m != nil && c.id != "sha256:"+m[1] {
		return nil, fmt.Errorf("%.200q: %w", image.Config, ErrDigest)
	}
	if c.config, err = v1.ParseConfigFile(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("%.200q: %w", image.Config, err)
	}
	if len(image.Layers) > s.Limits.Layers {
		return nil, fmt.Errorf("%w: %d layers", ErrTooMuch, s.Limits.Layers)
	}
	for _, name := range image.Layers {
		b, err := part(on, name, "")
		if err != nil {
			return nil, err
		}
		c.layers = append(c.layers, b)
	}
	return c, nil
}
