package overlays

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/gate"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/sandbox/follow"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// rejection is what one call of Reject decided.
type rejection struct {
	*subject
	tree    *overlay.Tree
	entries []gate.Entry
}

// Reject leaves changes out until they become others, and makes inside what the host
// has in their place, except in the overlay of a run. A sandbox that is stopped is started for it. What goes wrong
// inside is a note: the changes are rejected all the same.
func (s *Service) Reject(ctx context.Context, r *api.SyncRejection, by string) (*api.SyncDone, error) {
	rejected, err := onGate(ctx, s, &r.Subject, func(g *opened) (*rejection, error) {
		entries, err := g.Reject(r.Paths, by)
		return &rejection{g.subject, g.tree, entries}, err
	})
	if err != nil {
		return nil, err
	}
	done := &api.SyncDone{Files: []string{}}
	for i := range rejected.entries {
		done.Files = append(done.Files, text(rejected.entries[i].Path))
	}
	if len(done.Files) > 0 && r.Subject.Run == "" { // the agent of a run is gone
		done.Note = rejected.putBack(ctx)
	}
	rejected.changed("reject", len(done.Files))
	return decided(ctx, s, &r.Subject, done, nil)
}

// putBack makes inside what the host has, and returns what a person should know.
func (r *rejection) putBack(ctx context.Context) (note string) {
	box, leave, err := r.enter(ctx)
	if err != nil {
		return text("they stay inside, because the sandbox cannot be entered: " + err.Error())
	}
	defer leave()
	left, err := r.PutBack(ctx, box, r.tree, r.inside())
	switch {
	case err != nil:
		return text("some may stay inside: " + err.Error())
	case len(left) > 0:
		return text(fmt.Sprintf("%d stay inside, %q among them: the agent changed them since, or they cannot be written through the sandbox", len(left), left[0]))
	}
	return ""
}

// inside returns the entries as package follow takes them.
func (r *rejection) inside() (list []follow.Rejected) {
	for i := range r.entries {
		e := &r.entries[i]
		row := follow.Rejected{Path: e.Path, SHA256: e.SHA256, Link: e.Link}
		if e.Kind != overlay.Deleted {
			row.Kind = kindOf(e.Mode)
		}
		list = append(list, row)
	}
	return list
}

// kindOf returns the guest's word for a type of file.
func kindOf(mode fs.FileMode) guestfs.FileKind {
	switch mode.Type() {
	case 0:
		return guestfs.KindFile
	case fs.ModeDir:
		return guestfs.KindDir
	case fs.ModeSymlink:
		return guestfs.KindSymlink
	case fs.ModeNamedPipe:
		return guestfs.KindFIFO
	case fs.ModeSocket:
		return guestfs.KindSocket
	}
	return guestfs.KindDevice
}
