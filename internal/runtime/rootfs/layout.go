package rootfs

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/atoll-run/atoll/internal/errhint"
)

// The parts of an OCI image layout that have fixed names, and the notes that
// programs keep an image's reference in.
const (
	layoutIndex    = "index.json"
	layoutMarker   = "oci-layout"
	layoutRefName  = "org.opencontainers.image.ref.name"
	layoutFullName = "io.containerd.image.name"
)

func isLayout(s imageSource) bool { return has(s, layoutIndex) && has(s, layoutMarker) }

// named is a candidate and what its source calls it.
type named struct {
	*candidate
	names []string
}

// maxNesting is how many indexes may lead from one to the next.
const maxNesting = 3

// readLayout finds the images of an OCI layout that are for this machine.
func (s *Store) readLayout(on imageSource, source string) ([]named, error) {
	data, err := document(on, layoutIndex, "", s.Limits.Document)
	if err != nil {
		return nil, err
	}
	top, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", layoutIndex, err)
	}
	var found []named
	for _, d := range forThisMachine(top.Manifests) {
		c, err := s.fromDescriptor(on, d, maxNesting)
		if err != nil {
			return nil, err
		}
		c.source = source
		found = append(found, named{c, namesIn(d)})
		if len(found) > s.Limits.Layers {
			return nil, fmt.Errorf("%w: %d images in one layout", ErrTooMuch, s.Limits.Layers)
		}
	}
	if len(found) == 0 {
		return nil, noneFits(top.Manifests)
	}
	return found, nil
}

// forThisMachine drops descriptors that name another platform.
func forThisMachine(all []v1.Descriptor) []v1.Descriptor {
	var kept []v1.Descriptor
	for _, d := range all {
		if d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
			kept = append(kept, d)
		}
	}
	return kept
}

func noneFits(all []v1.Descriptor) error {
	return errhint.With(fmt.Errorf("no image for linux/%s in it", runtime.GOARCH), "it has "+platforms(all))
}

func platforms(all []v1.Descriptor) string {
	var list []string
	for _, d := range all {
		if d.Platform != nil {
			list = append(list, d.Platform.String())
		}
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// namesIn are the references that a layout has for a descriptor. A bare tag,
// which some programs write, is no name.
func namesIn(d v1.Descriptor) []string {
	for _, note := range []string{layoutFullName, layoutRefName} {
		if name := d.Annotations[note]; strings.ContainsAny(name, ":/") {
			return []string{name}
		}
	}
	return nil
}

func blobName(d v1.Descriptor) (string, error) {
	if d.Digest.Algorithm != "sha256" {
		return "", fmt.Errorf("digest %s: only sha256 is known here", d.Digest)
	}
	return "blobs/sha256/" + d.Digest.Hex, nil
}

// fromDescriptor reads a manifest, through an index of platforms if need be.
func (s *Store) fromDescriptor(on imageSource, d v1.Descriptor, nesting int) (*candidate, error) {
	name, err := blobName(d)
	if err != nil {
		return nil, err
	}
	data, err := document(on, name, d.Digest.String(), s.Limits.Document)
	if err != nil {
		return nil, err
	}
	if d.MediaType.IsIndex() {
		return s.fromIndex(on, data, nesting)
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	return s.fromManifest(on, manifest, d.Digest.String())
}

func (s *Store) fromIndex(on imageSource, data []byte, nesting int) (*candidate, error) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	fitting := forThisMachine(index.Manifests)
	if len(fitting) == 0 || nesting == 0 {
		return nil, noneFits(index.Manifests)
	}
	return s.fromDescriptor(on, fitting[0], nesting-1)
}

func (s *Store) fromManifest(on imageSource, m *v1.Manifest, digest string) (*candidate, error) {
	if err := s.checkManifest(m); err != nil {
		return nil, err
	}
	name, err := blobName(m.Config)
	if err != nil {
		return nil, err
	}
	data, err := document(on, name, m.Config.Digest.String(), s.Limits.Document)
	if err != nil {
		return nil, err
	}
	c := &candidate{id: m.Config.Digest.String(), digest: digest}
	if c.config, err = v1.ParseConfigFile(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	for _, l := range m.Layers {
		if name, err = blobName(l); err != nil {
			return nil, err
		}
		b, err := part(on, name, l.Digest.String())
		if err != nil {
			return nil, err
		}
		c.layers = append(c.layers, b)
	}
	return c, nil
}
