package relay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

const (
	patchName = "changes.patch"
	// maxPatch is how much of a patch is kept; maxShown is how large one may be
	// that a pull request shows, of whose 64 KiB it is a part.
	maxPatch = 4 << 20
	maxShown = 16 << 10
)

// Patch describes the patch that is kept for people, rendered by the host from
// commits that it checked and rewrote.
type Patch struct {
	Bytes int    `json:"bytes"`
	Cut   bool   `json:"cut,omitzero"`  // there is more
	Why   string `json:"why,omitempty"` // why there is none
}

// renderPatch writes the patch of commits that may be pushed, or may be if a person
// says so. One that cannot be rendered stops nothing: the commits are there.
func (r *Relay) renderPatch(ctx context.Context, repo *git.Repo, record *Record) error {
	if record.Head == "" {
		return nil
	}
	dir, err := r.runDir(record.Run)
	if err != nil {
		return err
	}
	text, cut, err := repo.Patch(ctx, record.Work.Tip(), record.Head, maxPatch)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		record.Patch = &Patch{Why: err.Error()}
		return nil
	}
	record.Patch = &Patch{Bytes: len(text), Cut: cut}
	return writeAtomic(filepath.Join(dir, patchName), text)
}

// LoadPatch reads the patch of a run.
func (r *Relay) LoadPatch(record *Record) ([]byte, error) {
	dir, err := r.runDir(record.Run)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, patchName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errhint.With(fmt.Errorf("there is no patch of run %s", record.Run), "commits that are blocked, or that were not taken, have none")
	}
	return text, err
}

// patchSection is the patch as a part of a pull request's body: folded if it is
// small, and otherwise where it is.
func (r *Relay) patchSection(record *Record) string {
	p := record.Patch
	if p == nil || p.Bytes == 0 {
		return ""
	}
	if text, err := r.LoadPatch(record); err == nil && len(text) <= maxShown && !p.Cut {
		return fmt.Sprintf("\n<details><summary>What this run changed, as a patch</summary>\n\n%s\n</details>\n", rewrite.Block("diff", string(text)))
	}
	size := fmt.Sprintf("%d bytes", p.Bytes)
	if p.Cut {
		size = "the first " + size
	}
	return fmt.Sprintf("\nWhat this run changed is kept as a patch (%s) where the agent ran: `atoll relay show %s --patch`.\n", size, record.Run)
}
