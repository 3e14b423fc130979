package provide

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/atoll-run/atoll/internal/filelock"
	"github.com/atoll-run/atoll/internal/machine/guestfs"
	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox/follow"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
)

// followHost hands edits that a person makes in the base of an overlay to its sandbox
// while that is in use. A sandbox that was running already gets first what was edited
// meanwhile, so that a command never begins with files that were replaced.
func (a *Installation) followHost(ctx context.Context, s *ReadySandbox) error {
	followers, err := a.followers(s)
	if err != nil || len(followers) == 0 {
		return err
	}
	for _, f := range followers {
		if err := a.catchUp(ctx, s, f); err != nil {
			return err
		}
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, f := range followers {
		running.Go(func() { a.follow(background, f) })
	}
	s.stopFollowing = func() {
		cancel()
		running.Wait()
	}
	return nil
}

// followers returns a follower for each overlay of a sandbox that holds files of a
// person.
func (a *Installation) followers(s *ReadySandbox) (list []*follow.Follower, err error) {
	for _, i := range s.Plan.Overlays() {
		mount := s.Plan.Mounts[i]
		if mount.Kind == policy.MountGit {
			continue
		}
		request := a.overlayRequest(s.Plan, i)
		tree, err := overlay.Load(request.Dir)
		if errors.Is(err, overlay.ErrNone) {
			continue
		} else if err != nil {
			return nil, err
		}
		files, err := guestfs.New(s.Machine, []guestfs.Root{{Path: mount.Target}})
		if err != nil {
			return nil, err
		}
		list = append(list, &follow.Follower{Tree: tree, Files: files, Hide: request.Hide, Log: a.Logger})
	}
	return list, nil
}

// PutBack makes inside what the base of an overlay has where a person rejected what the
// agent has, and returns the paths that stay as the agent has them.
func (a *Installation) PutBack(ctx context.Context, s *ReadySandbox, t *overlay.Tree, rejected []follow.Rejected) (left []string, err error) {
	followers, err := a.followers(s)
	if err != nil {
		return nil, err
	}
	for _, f := range followers {
		if f.Tree.Dir == t.Dir {
			return f.PutBack(ctx, rejected)
		}
	}
	return nil, fmt.Errorf("%s: %w", t.Base, overlay.ErrNone)
}

// catchUp hands over what was edited while a running sandbox was not in use.
func (a *Installation) catchUp(ctx context.Context, s *ReadySandbox, f *follow.Follower) error {
	if s.Created {
		return nil
	}
	edited, err := f.Tree.MayHaveEdits()
	if err != nil || !edited {
		return err
	}
	if err := f.CatchUp(ctx); err != nil {
		return fmt.Errorf("edits in %s: %w", f.Tree.Base, err)
	}
	return nil
}

// follow runs a follower until ctx ends. Of several processes that use a sandbox one
// does it; the next takes over when that ends.
func (a *Installation) follow(ctx context.Context, f *follow.Follower) {
	locks, err := filelock.Open(filepath.Join(f.Tree.Dir, "follow.lock"))
	if err == nil {
		var held *filelock.Lock
		if held, err = locks.Hold(ctx, "follow"); err == nil {
			defer held.Release()
			err = f.Run(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		a.Logger.WarnContext(ctx, "edits of the host do not reach the sandbox any more; `atoll sync refresh` brings them", "directory", f.Tree.Base, "error", err)
	}
}
