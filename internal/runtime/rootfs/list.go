package rootfs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// List returns the images of the store, the newest first.
func (s *Store) List(context.Context) ([]*Image, error) {
	x, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	pins, err := s.pins()
	if err != nil {
		return nil, err
	}
	for _, image := range x.Images {
		for owner, p := range pins {
			if p.ID == image.ID {
				image.UsedBy = append(image.UsedBy, owner)
			}
		}
		slices.Sort(image.UsedBy)
		for _, l := range image.Layers {
			if !s.hasLayer(l.name()) {
				image.Problem = "layer " + l.DiffID + " is gone: pull or import the image again"
			}
		}
	}
	slices.SortStableFunc(x.Images, func(a, b *Image) int { return cmp.Or(b.Added.Compare(a.Added), cmp.Compare(a.ID, b.ID)) })
	return x.Images, nil
}

// Users returns the sandboxes that stand on a layer of an image.
func (s *Store) Users(image *Image) (users []string, err error) {
	pins, err := s.pins()
	if err != nil {
		return nil, err
	}
	for owner, p := range pins {
		if slices.ContainsFunc(image.Layers, func(l Layer) bool { return slices.Contains(p.Layers, l.name()) }) {
			users = append(users, owner)
		}
	}
	slices.Sort(users)
	return users, nil
}

// Find returns one image by reference or id.
func (s *Store) Find(_ context.Context, ref string) (*Image, error) { return s.find(ref) }

// Removed is what became of a removed name.
type Removed struct {
	Image *Image `json:"image"`
	Gone  bool   `json:"gone"` // it has no name left; its layers go when no sandbox stands on them
}

// Remove takes a name from its image, or all names if ref is an id. What
// sandboxes stand on stays until they are gone.
func (s *Store) Remove(ctx context.Context, ref string) (removed Removed, err error) {
	err = s.change(ctx, func(x *index) error {
		image, err := x.find(ref)
		if err != nil {
			return err
		}
		removed.Image = image
		before := len(image.Names)
		image.Names = slices.DeleteFunc(image.Names, func(n string) bool { return sameName(n, ref) })
		if len(image.Names) == before { // by id or digest: the image itself is meant
			image.Names = nil
		}
		if removed.Gone = len(image.Names) == 0; removed.Gone {
			x.Images = slices.DeleteFunc(x.Images, func(i *Image) bool { return i == image })
		}
		return nil
	})
	return removed, err
}

// Tag gives an image of the store another name.
func (s *Store) Tag(ctx context.Context, ref, name string) error {
	if err := checkNames([]string{name}); err != nil {
		return err
	}
	return s.change(ctx, func(x *index) error {
		image, err := x.find(ref)
		if err != nil {
			return err
		}
		named := *image
		named.Names = append(slices.DeleteFunc(slices.Clone(image.Names), func(n string) bool { return sameName(n, name) }), name)
		return x.put(&named)
	})
}

// ShortName is a reference as a person writes it.
func ShortName(ref string) string {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return ref
	}
	return strings.TrimPrefix(strings.TrimPrefix(parsed.Name(), "index.docker.io/library/"), "index.docker.io/")
}
