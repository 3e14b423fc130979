package npm

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/atoll-run/atoll/internal/errhint"
)

// npm fetches one archive after the other, so it is asked for some of them by several
// processes at once.
const (
	batch    = 20
	parallel = 4
)

// Fetch brings the archives of packages into a directory, each under the name of
// Package.File. Those that are there stay: a fetch that was interrupted goes on.
// report is called with the number that is there, and may be nil.
func (c *Client) Fetch(ctx context.Context, dir string, packages []Package, report func(done, all int)) error {
	if report == nil {
		report = func(int, int) {}
	}
	missing := missingIn(dir, packages)
	report(len(packages)-len(missing), len(packages))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	var mu sync.Mutex
	done := len(packages) - len(missing)
	for some := range slices.Chunk(missing, batch) {
		group.Go(func() error {
			if err := c.fetchAll(ctx, dir, some); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			done += len(some)
			report(done, len(packages))
			return nil
		})
	}
	return group.Wait()
}

// fetchAll fetches some packages. Names of archives of one batch may clash, so those
// that are missing afterwards are asked for one by one.
func (c *Client) fetchAll(ctx context.Context, dir string, packages []Package) error {
	if err := c.fetch(ctx, dir, packages); err != nil {
		return err
	}
	for _, p := range missingIn(dir, packages) {
		if err := c.fetch(ctx, dir, []Package{p}); err != nil {
			return err
		}
		if len(missingIn(dir, []Package{p})) > 0 {
			return errhint.With(fmt.Errorf("package %s: the archive is not the one that was resolved (SHA-512 %.16s…)", p.spec(), p.SHA512),
				"run `npm cache clean --force`, and find out who changed the package if it happens again")
		}
	}
	return nil
}

func missingIn(dir string, packages []Package) (missing []Package) {
	seen := map[string]bool{}
	for _, p := range packages {
		if _, err := os.Lstat(filepath.Join(dir, p.File())); err != nil && !seen[p.SHA512] {
			seen[p.SHA512] = true
			missing = append(missing, p)
		}
	}
	return missing
}

// fetch has npm write archives into a directory of their own, and takes those over
// that are what was resolved.
func (c *Client) fetch(ctx context.Context, dir string, packages []Package) error {
	temp, err := os.MkdirTemp(dir, "fetch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	args := []string{"pack", "--pack-destination", temp, "--"}
	want := map[string]string{}
	for _, p := range packages {
		args = append(args, p.spec())
		want[p.SHA512] = p.File()
	}
	if err := c.run(ctx, temp, args...); err != nil {
		return err
	}
	files, err := os.ReadDir(temp)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(temp, f.Name())
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		if name := want[sum]; name != "" {
			if err := os.Rename(path, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	sum := sha512.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), errors.Join(err, f.Close())
}
