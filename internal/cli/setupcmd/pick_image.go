package setupcmd

import (
	"context"
	"errors"
	"strings"

	"github.com/atoll-run/atoll/internal/cli/console"
	"github.com/atoll-run/atoll/internal/runtime/rootfs"
)

// pickImage returns the image, or the name of one, that word names; word itself if
// none begins so: it may be in one of the other notations of references.
func pickImage(ctx context.Context, store *rootfs.Store, word string) (string, error) {
	images, err := store.List(ctx)
	if err != nil {
		return "", err
	}
	full, err := console.Pick("image", word, ImageNames(images))
	if errors.Is(err, console.ErrNoneNamed) {
		return word, nil
	}
	return full, err
}

// ImageNames returns the words that name images.
func ImageNames(images []*rootfs.Image) (all []console.Named) {
	for _, i := range images {
		all = append(all, console.Named{Name: i.ID, Also: []string{strings.TrimPrefix(i.ID, "sha256:")}})
		for _, n := range i.Names {
			all = append(all, console.Named{Name: rootfs.ShortName(n)})
		}
	}
	return all
}
