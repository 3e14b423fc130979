package sandboxes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/atoll-run/atoll/api"
	"github.com/atoll-run/atoll/internal/sandbox"
)

// maxCounted is how many files of a workspace are counted.
const maxCounted = 100_000

// Metrics returns what a running sandbox uses.
func (s *Service) Metrics(ctx context.Context, r *Record) (*api.SandboxMetrics, error) {
	if r.Phase != Ready {
		return nil, ErrEnding
	}
	used, err := s.In.Manager.Usage(ctx, r.Name)
	if errors.Is(err, sandbox.ErrNotRunning) {
		return nil, ErrStopped
	}
	if err != nil {
		return nil, err
	}
	limits, err := s.Limits(r)
	if err != nil {
		return nil, err
	}
	m := &api.SandboxMetrics{
		At: s.Now().UTC(), CPUMs: int64(used.CPU / uint64(time.Millisecond)), CPUs: limits.CPUs, MemoryBytes: int64(used.Memory), MemoryLimitBytes: limits.Memory,
		Processes: int64(used.Pids), ProcessesLimit: limits.Pids, WorkspaceLimitBytes: limits.Workspace.Size, WorkspaceFilesLimit: limits.Workspace.Files,
	}
	return m, countFiles(ctx, r.Details.WorkspaceDir, m)
}

// errEnough ends the count.
var errEnough = errors.New("enough files were counted")

// countFiles counts what is in a workspace, which a sandbox changes meanwhile: no link is
// followed, and what cannot be read is left out.
func countFiles(ctx context.Context, dir string, m *api.SandboxMetrics) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		m.WorkspaceMore = true
		return nil //nolint:nilerr // it is another user's, or just gone
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case m.WorkspaceFiles >= maxCounted:
			return errEnough
		case err != nil:
			m.WorkspaceMore = true
			return fs.SkipDir
		case path == ".":
			return nil
		}
		m.WorkspaceFiles++
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			m.WorkspaceBytes += info.Size()
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		m.WorkspaceMore, err = true, nil
	}
	return err
}
