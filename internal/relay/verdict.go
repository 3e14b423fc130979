package relay

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

// applyPolicy judges the commits and, if they may be pushed, rewrites them.
func (r *Relay) applyPolicy(ctx context.Context, p *Project, record *Record) error {
	if record.Step != Taken {
		return nil
	}
	repo, err := r.quarantine(record)
	if err != nil {
		return err
	}
	policy := p.Policy
	policy.Known = append(policy.Known, r.Known...)
	if record.Report, err = content.Judge(ctx, repo, record.Work.Tip(), record.Taken, policy); err != nil {
		return fmt.Errorf("judge the commits: %w", err)
	}
	if record.Head, err = r.rewrite(ctx, p, repo, record); err != nil {
		return err
	}
	if err := r.renderPatch(ctx, repo, record); err != nil {
		return err
	}
	switch record.Report.Verdict() {
	case "":
		record.Step = Judged
	case contentpolicy.Approval:
		record.Step = Waiting
	default:
		record.Step = Blocked // refused
	}
	return r.save(record)
}

func (r *Relay) rewrite(ctx context.Context, p *Project, repo *git.Repo, record *Record) (string, error) {
	if record.Report.Verdict() == contentpolicy.Blocked {
		return "", nil
	}
	commits, err := repo.Commits(ctx, record.Report.Commits)
	if err != nil {
		return "", err
	}
	return rewrite.Commits(ctx, repo, commits, p.Identity)
}

func (r *Relay) quarantine(record *Record) (*git.Repo, error) {
	dir, err := r.runDir(record.Run)
	if err != nil {
		return nil, err
	}
	return git.Open(filepath.Join(dir, quarantineName), confined.Limits{})
}
