package provide

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/atoll-run/atoll/internal/config"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/sandbox"
	"github.com/atoll-run/atoll/internal/sandbox/directory"
	"github.com/atoll-run/atoll/internal/sandbox/overlay"
	"github.com/atoll-run/atoll/internal/sandbox/plan"
)

const (
	// runRecord is a file beside the overlay of a run: whose it is, and what waits.
	runRecord = "run.json"
	// syncDir holds the files of the gates, below the state directory.
	syncDir = "sync"
)

// RunOverlay is the record of the overlay of a run on a directory. It is written
// before the overlay is made, and goes with it.
type RunOverlay struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	// Waiting is what waited when it was looked at last; nil while the run is under way.
	Waiting *RunWaiting `json:"waiting,omitempty"`
	// Committed says that commits were made inside. Which files are in them is found out
	// inside.
	Committed bool `json:"committed,omitzero"`
	// Decided is since when nothing waits; overlay.KeepDiscarded later it is removed.
	Decided time.Time `json:"decided,omitzero"`
	dir     string
}

// RunWaiting counts what waits for a decision.
type RunWaiting struct {
	Pass     int `json:"pass"`
	Approval int `json:"approval"`
	Blocked  int `json:"blocked"`
	Conflict int `json:"conflict"`
	Commits  int `json:"commits"`
}

// RunSubject returns the subject of a run on a directory, as the record of its
// overlay says.
func (s *Settings) RunSubject(r *RunOverlay) Subject {
	d := &directory.Directory{Path: r.Directory}
	if found, err := s.Directory(r.Directory); err == nil && found.Path == r.Directory {
		if recorded, err := s.Directories().Find(found); err == nil {
			d = recorded // with the image of its sandbox
		}
	}
	return s.DirectorySubject(d, DirectoryOptions{Run: r.Run, Access: config.AccessOverlay})
}

// RecordRunOverlay writes the record of the overlay of a plan's sandbox.
func (s *Settings) RecordRunOverlay(p *plan.Plan, r *RunOverlay) error {
	r.dir = filepath.Join(s.Paths.AtollState, overlayDir, p.Layout.Slug)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	return r.Save()
}

// Save writes the record in one step.
func (r *RunOverlay) Save() error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return ReplaceFile(filepath.Join(r.dir, runRecord), text)
}

// Note records what waits now, if that is not what is recorded.
func (r *RunOverlay) Note(waiting *RunWaiting) error {
	before := *r
	r.Committed = r.Committed || waiting.Commits > 0
	switch {
	case *waiting != (RunWaiting{}):
		r.Decided = time.Time{}
	case r.Decided.IsZero():
		r.Decided = time.Now().UTC()
	}
	if before.Waiting != nil && *before.Waiting == *waiting && before.Decided.Equal(r.Decided) {
		return nil
	}
	r.Waiting = waiting
	return r.Save()
}

// RunOverlays returns the records of all overlays of runs, the newest first. A record
// that cannot be read is left out: its overlay stays.
func (s *Settings) RunOverlays() (list []RunOverlay, err error) {
	files, err := filepath.Glob(filepath.Join(s.Paths.AtollState, overlayDir, "*", runRecord))
	if err != nil {
		return nil, err
	}
	times := map[string]time.Time{}
	for _, file := range files {
		info, err := os.Lstat(file)
		text, err2 := os.ReadFile(file)
		r := RunOverlay{dir: filepath.Dir(file)}
		if errors.Join(err, err2) == nil && json.Unmarshal(text, &r) == nil && r.Run != "" {
			times[r.dir] = info.ModTime()
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b RunOverlay) int { return times[b.dir].Compare(times[a.dir]) })
	return list, nil
}

// RunOverlay returns the record of the overlay of one run; overlay.ErrNone if there is
// none.
func (s *Settings) RunOverlay(id string) (*RunOverlay, error) {
	list, err := s.RunOverlays()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Run == id {
			return &list[i], nil
		}
	}
	return nil, errhint.With(fmt.Errorf("run %s: %w", id, overlay.ErrNone),
		"a run has one that was started in a git checkout, until its changes are decided about: `atoll runs show "+id+"`")
}

// RunsOn returns the records of the runs on a directory in which something waits, or
// that are under way.
func (s *Settings) RunsOn(dir string) (list []RunOverlay, err error) {
	all, err := s.RunOverlays()
	for _, r := range all {
		if r.Decided.IsZero() && r.Directory == dir {
			list = append(list, r)
		}
	}
	return list, err
}

// RemoveRunOverlay removes the overlay of a run on a directory, with all changes, with
// the record, the home and what its gate kept. The sandbox must be gone.
func (a *Installation) RemoveRunOverlay(ctx context.Context, r *RunOverlay) error {
	slug := filepath.Base(r.dir)
	users, err := a.usersOfOverlays(ctx, r.dir)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return fmt.Errorf("sandbox %q: %w", users[0].ContainerName, sandbox.ErrBusy)
	}
	return errors.Join(overlay.RemoveAll(ctx, r.dir),
		os.RemoveAll(filepath.Join(a.Paths.AtollState, syncDir, slug)), os.RemoveAll(filepath.Join(a.Paths.AtollState, homesDir, slug)))
}

// RemoveHome removes the home of a plan's sandbox, which must be gone.
func (s *Settings) RemoveHome(p *plan.Plan) error { return os.RemoveAll(s.homeDir(p)) }

// RemoveDecidedRuns removes the overlays of runs in which nothing has waited for
// overlay.KeepDiscarded. A sandbox that was made for a decision keeps its overlay.
func (a *Installation) RemoveDecidedRuns(ctx context.Context) {
	list, err := a.RunOverlays()
	if err != nil {
		a.Logger.WarnContext(ctx, "overlays of runs not found", "error", err)
	}
	for i := range list {
		r := &list[i]
		if r.Decided.IsZero() || time.Since(r.Decided) < overlay.KeepDiscarded {
			continue
		}
		err := a.whileNoneIsMade(r.Directory, func() error { return a.RemoveRunOverlay(ctx, r) })
		if err != nil && !errors.Is(err, sandbox.ErrBusy) {
			a.Logger.WarnContext(ctx, "overlay of a run not removed", "run", r.Run, "error", err)
		}
	}
}
