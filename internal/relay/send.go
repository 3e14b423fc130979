package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/checkout"
	"github.com/atoll-run/atoll/internal/errhint"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/github"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

// Send does the steps that are left: judge, push, open the pull request. The
// caller holds the lock of the branch.
func (r *Relay) Send(ctx context.Context, p *Project, record *Record) error {
	record.Held, record.Denied = false, ""
	err := r.send(ctx, p, record)
	record.Trouble = ""
	if err != nil {
		record.Trouble = err.Error()
	}
	return errors.Join(err, r.save(record))
}

func (r *Relay) send(ctx context.Context, p *Project, record *Record) error {
	if record.Project != p.id() {
		return fmt.Errorf("run %s belongs to another repository", record.Run)
	}
	for _, step := range []struct {
		from Step
		do   func(context.Context, *Project, *Record) error
	}{{Taken, r.applyPolicy}, {Judged, r.push}, {Pushed, r.openPull}} {
		if record.Step != step.from {
			continue
		}
		if err := step.do(ctx, p, record); err != nil {
			return err
		}
	}
	return nil
}

// Approve lets commits be pushed that wait for a person.
func (r *Relay) Approve(record *Record, by string) error {
	if record.Step != Waiting {
		return errhint.With(fmt.Errorf("the commits of run %s are %s and wait for nobody", record.Run, record.Step), "`atoll relay status` lists what waits")
	}
	record.Approved, record.Denied, record.Step = by, "", Judged
	return r.save(record)
}

// push pushes the branch. If the server refuses, it looks whether the branch is
// there already: a crash may have come between the push and its record.
func (r *Relay) push(ctx context.Context, p *Project, record *Record) error {
	repo, err := r.quarantine(record)
	if err != nil {
		return err
	}
	if p.Checkout != nil {
		if err := addBranch(ctx, p.Checkout, repo, record); err != nil {
			return explainPush(err, record)
		}
		record.Step = Pushed
		return r.save(record)
	}
	remote, done, err := p.authenticate(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := repo.Push(ctx, &remote, record.Work.Key.Ref(), record.Head, record.Work.Seen); err != nil {
		if errors.Is(err, git.ErrRefused) || !r.isPushed(ctx, repo, &remote, record) {
			return explainPush(err, record)
		}
	}
	record.Step = Pushed
	return r.save(record)
}

// isPushed reports whether the server's branch is the record's head.
func (r *Relay) isPushed(ctx context.Context, repo *git.Repo, remote *git.Remote, record *Record) bool {
	heads, err := repo.Heads(ctx, remote, record.Work.Key.Ref())
	return err == nil && heads[record.Work.Key.Ref()] == record.Head
}

func explainPush(err error, record *Record) error {
	if errors.Is(err, git.ErrStale) || errors.Is(err, checkout.ErrMoved) {
		return errhint.With(fmt.Errorf("push %s: %w", record.Work.Key.Branch(), err), "the commits are kept; run the agent again on this branch, which then starts from what is there")
	}
	return err
}

// openPull opens or updates the pull request.
func (r *Relay) openPull(ctx context.Context, p *Project, record *Record) error {
	if p.Pulls != nil {
		remote, done, err := p.authenticate(ctx)
		if err != nil {
			return err
		}
		defer done()
		opened, err := p.Pulls.Client.Ensure(ctx, remote.Secret, &github.Pull{
			Owner: p.Pulls.Owner, Repo: p.Pulls.Repo, Head: record.Work.Key.Branch(), Base: p.Base,
			Run: record.Run, Title: pullTitle(record), Body: pullBody(record) + r.patchSection(record), Labels: p.Pulls.Labels, Draft: p.Pulls.Draft,
		})
		if err != nil {
			return err
		}
		record.PullURL = opened.URL
	}
	record.Step = Done
	return r.save(record)
}

func pullTitle(record *Record) string {
	if title := rewrite.Message(record.About.Title); record.About.Title != "" {
		return title
	}
	return "Work on " + string(record.Work.Key)
}

// pullBody is the text for a reviewer, written by the host; what came from inside
// is escaped.
func pullBody(record *Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Commits of an agent that worked in a sandbox. Its branch is `%s`; later runs add to it.\n\n", record.Work.Key.Branch())
	for _, row := range [][2]string{
		{"run", record.Run}, {"agent", record.About.Variant}, {"model", record.About.Model}, {"cost", record.About.Cost},
		{"commits", fmt.Sprint(len(record.Report.Commits))}, {"changed files", fmt.Sprint(record.Report.Files)}, {"approved by", record.Approved},
	} {
		if row[1] != "" {
			fmt.Fprintf(&b, "- %s: `%s`\n", row[0], strings.ReplaceAll(rewrite.Message(row[1]), "`", "'"))
		}
	}
	if len(record.Report.Findings) == 0 {
		b.WriteString("\nThe content policy found nothing.\n")
		return b.String()
	}
	b.WriteString("\nThe content policy found what a person approved:\n\n")
	for _, f := range record.Report.Findings {
		fmt.Fprintf(&b, "- `%s`\n", strings.ReplaceAll(rewrite.Message(f.String()), "`", "'"))
	}
	return b.String()
}
