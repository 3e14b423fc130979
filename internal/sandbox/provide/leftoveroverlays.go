package provide

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/policy"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

// temporaryMark is a file beside the overlays of one scope: they end with their sandbox,
// also if the process that made them was killed. It holds the path that is locked while
// the sandbox is made.
const temporaryMark = "temporary"

// markTemporaryOverlays records, before they are made, that the overlays of a plan end
// with their sandbox.
func (s *Settings) markTemporaryOverlays(p *plan.Plan) error {
	if !p.Layout.Temporary {
		return nil
	}
	dir := filepath.Join(s.Paths.AtollState, overlayDir, p.Layout.Slug)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, temporaryMark), []byte(p.Layout.WorkspaceDir), 0o600)
}

// removeTemporaryOverlays removes overlays that should have ended with their sandbox, and
// the sandbox too if there is one.
func (a *Installation) removeTemporaryOverlays(ctx context.Context) (done []sandbox.Removal) {
	marks, err := filepath.Glob(filepath.Join(a.Paths.AtollState, overlayDir, "*", temporaryMark))
	if err != nil {
		a.Logger.WarnContext(ctx, "temporary overlays not found", "error", err)
	}
	for _, mark := range marks {
		if locked, err := os.ReadFile(mark); err == nil {
			done = append(done, a.endTemporaryOverlays(ctx, filepath.Dir(mark), string(locked))...)
		}
	}
	return done
}

// endTemporaryOverlays removes the overlays of one scope with their sandboxes, unless
// they are in use.
func (a *Installation) endTemporaryOverlays(ctx context.Context, dir, locked string) (done []sandbox.Removal) {
	users, err := a.usersOfOverlays(ctx, dir)
	if err != nil {
		return nil
	}
	for _, e := range users {
		err := a.Manager.Discard(ctx, e.ContainerName)
		if errors.Is(err, sandbox.ErrBusy) {
			return done
		}
		done = append(done, sandbox.Removal{Entry: e, Reason: leftByKilled, Err: err})
	}
	err = a.whileNoneIsMade(locked, func() error {
		if users, err := a.usersOfOverlays(ctx, dir); err != nil || len(users) > 0 {
			return errors.Join(err, sandbox.ErrBusy)
		}
		return overlay.RemoveAll(ctx, dir)
	})
	if err != nil && !errors.Is(err, sandbox.ErrBusy) {
		a.Logger.WarnContext(ctx, "overlays of a killed command not removed", "dir", dir, "error", err)
	}
	return done
}

// usersOfOverlays returns the sandboxes whose overlays a directory holds.
func (a *Installation) usersOfOverlays(ctx context.Context, dir string) (users []*sandbox.Entry, err error) {
	entries, err := a.Registry.List(ctx, 0)
	for _, e := range entries {
		if !e.Imported && policy.DirName(e.SessionKey) == filepath.Base(dir) {
			users = append(users, e)
		}
	}
	return users, err
}
