package debian

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/errhint"
)

// FindOne returns the archive of one package, without those that it needs, after it has
// fetched the lists of what there is. dir is a directory of ours.
func (c *Client) FindOne(ctx context.Context, dir, name string) (Archive, error) {
	if err := c.prepare(dir); err != nil {
		return Archive{}, err
	}
	if _, err := c.run(ctx, dir, "update"); err != nil {
		return Archive{}, err
	}
	printed, err := c.run(ctx, dir, "--print-uris", "download", name)
	if err != nil {
		return Archive{}, err
	}
	found, err := parseURIs(printed)
	if err != nil {
		return Archive{}, err
	}
	return found[0], nil
}

// FetchOne brings the archive that FindOne found, and returns its path.
func (c *Client) FetchOne(ctx context.Context, dir, name string, archive Archive) (string, error) {
	if _, err := c.run(ctx, dir, "download", name); err != nil {
		return "", err
	}
	path := filepath.Join(dir, archive.File)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != archive.Size {
		return "", errhint.With(fmt.Errorf("apt-get: %s was not fetched as announced", archive.File), "run the same command again")
	}
	return path, nil
}
