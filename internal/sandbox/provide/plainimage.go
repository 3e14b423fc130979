package provide

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/runtime/rootfs"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// plainImage says, of an image that is plain Debian under another name, that the
// tools which that name promises are missing.
func (a *Installation) plainImage(ctx context.Context, p *plan.Plan) []string {
	if p.Spec.Backend != BackendLinux || rootfs.IsHost(p.Spec.Image) {
		return nil
	}
	store, err := a.images()
	if err != nil {
		return nil
	}
	image, err := store.Find(ctx, p.Spec.Image)
	if err != nil || isDebian(p.Spec.Image) || !slices.ContainsFunc(image.Names, isDebian) {
		return nil
	}
	return []string{fmt.Sprintf("the image %s is plain Debian under another name: no tools are installed in it", p.Spec.Image)}
}

func isDebian(name string) bool {
	return strings.HasPrefix(name, "debian:") || strings.HasPrefix(name, "docker.io/library/debian:")
}
