package take

import (
	"context"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// Committed returns a function that reports whether the agent committed a path as
// it is: with content of this object id, or "" if it is gone. Such paths are part
// of what Take takes, or of another branch that the host has, and need no review
// as files. A path that the agent's HEAD has as the host's HEAD has it is never
// among them: no commit carries such a change.
func (o *Offer) Committed(ctx context.Context) (func(path, blob string) bool, error) {
	committed := map[string]string{}
	if o.Head != "" && o.Head != o.hostHead {
		from := git.EmptyTree
		if o.hostHead != "" {
			from = o.hostHead
		}
		changes, err := o.repo.Changes(ctx, from, o.Head)
		if err != nil {
			return nil, err
		}
		for i := range changes {
			committed[changes[i].Path] = blobOf(&changes[i])
		}
	}
	return func(path, blob string) bool {
		id, ok := committed[path]
		return ok && id == blob
	}, nil
}

// blobOf returns the object that a path has after a change; "" if it is gone.
func blobOf(c *git.Change) string {
	if c.Removed() {
		return ""
	}
	return c.NewID
}
