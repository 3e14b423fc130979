package take

import (
	"context"
	"io/fs"

	"github.com/atoll-run/atoll/internal/relay/git"
)

// Committed returns a function that reports whether the agent committed a path as
// it is: with this mode and content of this object id, or "" if it is gone. Such paths are part
// of what Take takes, or of another branch that the host has, and need no review
// as files. A path that the agent's HEAD has as the host's HEAD has it is never
// among them: no commit carries such a change.
func (o *Offer) Committed(ctx context.Context) (func(path string, mode fs.FileMode, blob string) bool, error) {
	committed := map[string]*git.Change{}
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
			committed[changes[i].Path] = &changes[i]
		}
	}
	return func(path string, mode fs.FileMode, blob string) bool {
		c := committed[path]
		switch {
		case c == nil:
			return false
		case c.Removed() || blob == "":
			return c.Removed() && blob == ""
		}
		return c.NewID == blob && c.NewMode == gitMode(mode)
	}, nil
}

// gitMode is how git writes the mode of a file.
func gitMode(mode fs.FileMode) string {
	switch {
	case mode.Type() == fs.ModeSymlink:
		return git.ModeLink
	case mode.Perm()&0o100 != 0:
		return git.ModeProgram
	}
	return git.ModeFile
}
