package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/atoll-run/atoll/internal/errhint"
)

// ErrNoImage means that the store has no image of that name.
var ErrNoImage = errors.New("image not found")

// noImage says so in the words that users of OpenClaw know.
type noImage struct{ ref string }

func (e noImage) Error() string {
	return "Sandbox image not found: " + e.ref + ". Build or pull it first."
}

func (e noImage) Is(target error) bool { return target == ErrNoImage }

// Image is one image of the store.
type Image struct {
	ID      string    `json:"id"`               // digest of its configuration, as container engines name images
	Names   []string  `json:"names"`            // references, as a person writes them
	Digest  string    `json:"digest,omitempty"` // of the manifest it was pulled by
	Source  string    `json:"source"`           // where it came from
	OnHost  bool      `json:"onHost,omitempty"` // its layers lie on the host's own programs
	Size    int64     `json:"size"`             // bytes of its files
	Files   int64     `json:"files"`
	Layers  []Layer   `json:"layers"` // the lowest first
	Added   time.Time `json:"added"`
	Config  Config    `json:"config"`
	UsedBy  []string  `json:"usedBy,omitempty"` // sandboxes; filled in by List
	Problem string    `json:"problem,omitempty"`
}

// Layer is one layer of an image.
type Layer struct {
	DiffID string `json:"diffId"` // digest of the uncompressed archive
	Size   int64  `json:"size"`
	Files  int64  `json:"files"`
	Opaque bool   `json:"opaque,omitempty"` // nothing of the layers below shows
}

// name is the layer's directory. A digest's colon would end a path in the
// options of an overlay mount.
func (l Layer) name() layerName { return layerName(strings.Replace(l.DiffID, ":", "-", 1)) }

// lowers are the directories of the image's layers, the topmost first. Of a
// layer that is there twice only the upper one shows, and an overlay takes no
// directory twice.
func (i *Image) lowers() []layerName {
	var names []layerName
	for _, l := range slices.Backward(i.Layers) {
		if !slices.Contains(names, l.name()) {
			names = append(names, l.name())
		}
		if l.Opaque {
			break
		}
	}
	return names
}

// index is the content of index.json.
type index struct {
	Version int      `json:"version"`
	Images  []*Image `json:"images"`
}

const indexVersion = 1

func (s *Store) readIndex() (*index, error) {
	x := &index{Version: indexVersion}
	err := readJSON(s.path("index.json"), x)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return x, nil
	case err != nil:
		return nil, errhint.With(fmt.Errorf("image store: index.json: %w", err), "remove "+s.dir+" and pull or import the images again")
	case x.Version > indexVersion:
		return nil, errhint.With(fmt.Errorf("image store: made by a newer version of Atoll"), "use the newer atoll, or another ATOLL_STATE_DIR")
	}
	return x, nil
}

// change lets f change the index under its lock.
func (s *Store) change(ctx context.Context, f func(*index) error) error {
	content, err := s.locks.Share(ctx, contentLock) // or the new index might be collected on its way
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	defer content.Release()
	held, err := s.locks.Hold(ctx, indexLock)
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	defer held.Release()
	x, err := s.readIndex()
	if err != nil {
		return err
	}
	if err := f(x); err != nil {
		return err
	}
	return writeJSON(s.path("tmp"), s.path("index.json"), x, !s.Volatile)
}

// put adds an image, or its names to the same image, and takes the names from
// every other. An image without names is not in the index any more.
func (x *index) put(image *Image) error {
	for _, other := range x.Images {
		for _, n := range image.Names {
			other.Names = slices.DeleteFunc(other.Names, func(o string) bool { return sameName(o, n) })
		}
		if other.ID == image.ID {
			image.Names = append(other.Names, image.Names...)
			image.Digest = cmp.Or(image.Digest, other.Digest)
			other.Names = nil
		}
	}
	x.Images = append(slices.DeleteFunc(x.Images, func(i *Image) bool { return len(i.Names) == 0 }), image)
	return nil
}

func sameName(a, b string) bool {
	fullA, errA := canonical(a)
	fullB, errB := canonical(b)
	return errA == nil && errB == nil && fullA == fullB
}

// find looks an image up by reference, id, or the beginning of an id.
func (s *Store) find(ref string) (*Image, error) {
	x, err := s.readIndex()
	if err != nil {
		return nil, err
	}
	image, err := x.find(ref)
	if err != nil {
		return nil, err
	}
	for _, l := range image.Layers {
		if !s.hasLayer(l.name()) {
			return nil, errhint.With(fmt.Errorf("image %s: layer %s is gone from the store", ref, l.DiffID), "pull or import it again")
		}
	}
	return image, nil
}

func (x *index) find(ref string) (*Image, error) {
	want, err := canonical(ref)
	if err != nil {
		return nil, err
	}
	for _, image := range x.Images {
		if image.ID == ref || image.matches(want) {
			return image, nil
		}
	}
	if image := x.byPrefix(ref); image != nil {
		return image, nil
	}
	return nil, errhint.With(noImage{ref}, ImportHint(ref))
}

// matches compares full names; name@digest means the digest.
func (i *Image) matches(want string) bool {
	if repository, digest, ok := strings.Cut(want, "@"); ok && i.Digest == digest {
		return slices.ContainsFunc(i.Names, func(n string) bool { return repositoryOf(n) == repository })
	}
	return slices.ContainsFunc(i.Names, func(n string) bool { full, err := canonical(n); return err == nil && full == want })
}

func repositoryOf(ref string) string {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return ""
	}
	return parsed.Context().Name()
}

const minPrefix = 12 // of an id in place of a name, as container engines print it

func (x *index) byPrefix(ref string) *Image {
	prefix := strings.TrimPrefix(ref, "sha256:")
	if len(prefix) < minPrefix || strings.Trim(prefix, "0123456789abcdef") != "" {
		return nil
	}
	var found *Image
	for _, image := range x.Images {
		if strings.HasPrefix(image.ID, "sha256:"+prefix) {
			if found != nil {
				return nil
			}
			found = image
		}
	}
	return found
}

// canonical is a reference in full: registry, repository, tag or digest.
func canonical(ref string) (string, error) {
	if strings.HasPrefix(ref, "sha256:") {
		return ref, nil
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", errhint.With(fmt.Errorf("image %q: not an image reference", ref), "write for example debian:bookworm-slim or registry.example.com/team/image:tag")
	}
	return parsed.Name(), nil
}
