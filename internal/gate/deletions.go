package gate

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// The numbers of deleted files above which a person confirms.
const (
	maxDeletions    = 100
	maxDeletedShare = 5 // one file of so many
	fewDeletions    = 5 // that are never many, unless they are all
)

// ErrManyDeletions means that a batch deletes a large part of the base.
var ErrManyDeletions = errors.New("many files would be deleted")

// guardDeletions refuses to delete many files without a confirmation.
func (g *Gate) guardDeletions(base *baseDir, entries []*Entry, confirmed bool) error {
	deletions := 0
	for _, e := range entries {
		if e.Kind == overlay.Deleted && !e.OldMode.IsDir() {
			deletions++
		}
	}
	if confirmed || deletions == 0 {
		return nil
	}
	files := base.countFiles(maxDeletedShare*deletions + 1)
	if deletions > maxDeletions || deletions >= files || deletions >= fewDeletions && deletions*maxDeletedShare > files {
		return fmt.Errorf("%w: %d of the directory's files", ErrManyDeletions, deletions)
	}
	return nil
}

// countFiles counts files of the base, at most limit. What git keeps for itself does
// not count.
func (b *baseDir) countFiles(limit int) (files int) {
	root, err := os.OpenRoot(b.root.Name())
	if err != nil {
		return 0
	}
	defer root.Close()
	dirs := []string{"."}
	for len(dirs) > 0 && files < limit {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		opened, err := root.Open(dir)
		if err != nil {
			continue
		}
		entries, _ := opened.ReadDir(-1) // what was read counts
		_ = opened.Close()
		for _, entry := range entries {
			switch {
			case entry.IsDir() && entry.Name() != ".git":
				dirs = append(dirs, path.Join(dir, entry.Name()))
			case !entry.IsDir():
				files++
			}
		}
	}
	return files
}
