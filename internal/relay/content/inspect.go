package content

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/atoll-run/atoll/internal/confined"
	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/relay/git"
)

// Judge applies the policy to the commits that head has and base has not. An error
// means that there is no verdict, and nothing may be pushed.
func Judge(ctx context.Context, repo *git.Repo, base, head string, policy Policy) (*Report, error) {
	return judge(ctx, repo, &inspection{base: base, head: head, known: []string{base}, descends: true, policy: policy})
}

// Beside is the commits that Head has and none of the Known ones has. They need
// not descend from Base, against which their sum is counted.
type Beside struct {
	Base, Head string
	Known      []string
}

// JudgeBeside is Judge for commits that need not descend from one.
func JudgeBeside(ctx context.Context, repo *git.Repo, of Beside, policy Policy) (*Report, error) {
	return judge(ctx, repo, &inspection{base: of.Base, head: of.Head, known: of.Known, policy: policy})
}

func judge(ctx context.Context, repo *git.Repo, j *inspection) (*Report, error) {
	j.repo, j.policy = repo, j.policy.withDefaults()
	j.report = &Report{Base: j.base, Head: j.head, Commits: []string{}, Findings: []contentpolicy.Finding{}}
	j.blobs, j.links, j.paths = map[string]location{}, map[string][]location{}, map[string]*pathFindings{}
	j.protected = contentpolicy.NewProtected(j.policy.Protected)
	within, cancel := context.WithTimeout(ctx, j.policy.Time)
	defer cancel()
	err := j.inspect(within)
	if detail := j.unreadableReason(ctx, within, err); detail != "" {
		j.blockAndStop(contentpolicy.Finding{Rule: "object", Verdict: contentpolicy.Blocked, Detail: detail})
		return j.report, nil
	}
	return j.report, err
}

func (j *inspection) inspect(ctx context.Context) error {
	for _, step := range []func(context.Context) error{j.history, j.commits, j.countFiles, j.sizes, j.secrets} {
		if err := step(ctx); err != nil || j.stopped {
			return err
		}
	}
	return nil
}

// unreadableReason says why commits cannot be read, if they are the cause: another
// attempt would fail in the same way, so they get a verdict instead of an error.
func (j *inspection) unreadableReason(caller, within context.Context, err error) string {
	failed, ended := errors.AsType[*confined.Error](err)
	switch {
	case err == nil || caller.Err() != nil:
		return ""
	case within.Err() != nil:
		return fmt.Sprintf("they cannot be judged in %s", j.policy.Time)
	case errors.Is(err, git.ErrMalformed) || errors.Is(err, confined.ErrTooMuch):
		return err.Error()
	case ended && failed.Exit() < 0:
		return "git cannot look at them within its limits"
	}
	return ""
}

// inspection is the state of one Judge call.
type inspection struct {
	repo      *git.Repo
	policy    Policy
	base      string
	head      string
	known     []string // commits that one of these has are left out
	descends  bool     // the head must descend from the base
	report    *Report
	protected *contentpolicy.Protected
	paths     map[string]*pathFindings
	list      []*git.Commit
	blobs     map[string]location   // new blobs, and where each was seen first
	links     map[string][]location // the same as targets of links, and where ever
	order     []string              // of blobs
	sized     []string              // the blobs that are not too large
	stopped   bool                  // the rest cannot be read within the limits
}

// location is the commit and path that a blob was seen at.
type location struct{ commit, path string }

// history checks the commit graph.
func (j *inspection) history(ctx context.Context) error {
	if does, err := j.descendsFromBase(ctx); err != nil {
		return err
	} else if !does {
		j.blockAndStop(contentpolicy.Finding{Rule: "history", Verdict: contentpolicy.Blocked, Commit: j.report.Head, Detail: "it does not descend from the base " + j.report.Base})
		return nil
	}
	ids, err := j.repo.Range(ctx, j.known, j.report.Head, j.policy.Commits)
	if err != nil {
		return err
	}
	if len(ids) > j.policy.Commits {
		j.blockAndStop(contentpolicy.Finding{Rule: "commit-count", Verdict: contentpolicy.Blocked, Detail: fmt.Sprintf("there are more than %d commits", j.policy.Commits)})
		return nil
	}
	j.report.Commits = append(j.report.Commits, ids...)
	j.list, err = j.repo.Commits(ctx, ids)
	return err
}

func (j *inspection) descendsFromBase(ctx context.Context) (bool, error) {
	if !j.descends {
		return true, nil
	}
	return j.repo.Descends(ctx, j.report.Base, j.report.Head)
}

// withinLimits reports whether the changes of a commit and their paths are within
// the limits.
func (j *inspection) withinLimits(c *git.Commit, changes []git.Change) bool {
	if len(changes) > j.policy.Files {
		j.blockAndStop(contentpolicy.Finding{Rule: "file-count", Verdict: contentpolicy.Blocked, Commit: c.ID, Detail: fmt.Sprintf("it changes %d files, more than %d", len(changes), j.policy.Files)})
		return false
	}
	for i := range changes {
		if path := changes[i].Path; len(path) > j.policy.PathBytes {
			j.blockAndStop(contentpolicy.Finding{Rule: "path-length", Verdict: contentpolicy.Blocked, Commit: c.ID, Path: shortPath(path), Detail: fmt.Sprintf("the path has %d bytes, more than %d", len(path), j.policy.PathBytes)})
			return false
		}
	}
	return true
}

// shortPath is a path cut to what a report holds.
func shortPath(path string) string {
	const most = 4096
	if len(path) > most {
		return strings.ToValidUTF8(path[:most], "") + "…"
	}
	return path
}

// blockAndStop reports a finding after which inspection ends.
func (j *inspection) blockAndStop(f contentpolicy.Finding) {
	j.report.add(f)
	j.stopped = true
}

// errStopped ends a walk after blockAndStop.
var errStopped = errors.New("there is nothing more to look at")

// commits looks at each commit against its first parent: whatever a tree holds
// came from there or is seen here, also in a merge.
func (j *inspection) commits(ctx context.Context) error {
	var tree contentpolicy.Spellings
	last := ""
	err := j.repo.EachChanges(ctx, j.list, func(c *git.Commit, changes []git.Change) (err error) {
		if !j.withinLimits(c, changes) {
			return errStopped
		}
		from := git.EmptyTree
		if len(c.Parents) > 0 {
			from = c.Parents[0]
		}
		if tree == nil || from != last {
			if tree, err = j.treePaths(ctx, from); err != nil {
				return err
			}
		}
		applyChanges(tree, changes)
		last = c.ID
		j.inspectCommit(c, changes, tree)
		return nil
	})
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

func (j *inspection) treePaths(ctx context.Context, of string) (contentpolicy.Spellings, error) {
	paths, err := j.repo.Paths(ctx, of)
	return contentpolicy.NewSpellings(paths), err
}

func (j *inspection) inspectCommit(c *git.Commit, changes []git.Change, tree contentpolicy.Spellings) {
	if len(c.Message) > j.policy.MessageBytes {
		j.report.add(contentpolicy.Finding{Rule: "message-size", Verdict: contentpolicy.Blocked, Commit: c.ID, Detail: fmt.Sprintf("its message has %d bytes, more than %d", len(c.Message), j.policy.MessageBytes)})
	}
	for i := range changes {
		j.inspectChange(c.ID, &changes[i], tree)
	}
}

// countFiles counts the files that change between base and head.
func (j *inspection) countFiles(ctx context.Context) error {
	changes, err := j.repo.Changes(ctx, j.report.Base, j.report.Head)
	if err != nil {
		return err
	}
	j.report.Files = len(changes)
	if len(changes) > j.policy.Files {
		j.report.add(contentpolicy.Finding{Rule: "file-count", Verdict: contentpolicy.Blocked, Detail: fmt.Sprintf("%d files change, more than %d", len(changes), j.policy.Files)})
	}
	return nil
}

// sizes checks the unpacked sizes of files.
func (j *inspection) sizes(ctx context.Context) error {
	if len(j.order) == 0 {
		return nil
	}
	objects, err := j.repo.Stat(ctx, j.order)
	if err != nil {
		return err
	}
	for _, o := range objects {
		at := j.blobs[o.ID]
		j.report.Bytes += o.Size
		if o.Type != "blob" {
			j.report.add(contentpolicy.Finding{Rule: "object", Verdict: contentpolicy.Blocked, Commit: at.commit, Path: at.path, Detail: "its contents are missing"})
		} else if o.Size > j.policy.FileBytes {
			j.report.add(contentpolicy.Finding{Rule: "file-size", Verdict: contentpolicy.Blocked, Commit: at.commit, Path: at.path, Detail: fmt.Sprintf("it has %d bytes, more than %d", o.Size, j.policy.FileBytes)})
		} else {
			j.sized = append(j.sized, o.ID)
		}
	}
	if j.report.Bytes > j.policy.TotalBytes {
		j.blockAndStop(contentpolicy.Finding{Rule: "total-size", Verdict: contentpolicy.Blocked, Detail: fmt.Sprintf("the changed files have %d bytes, more than %d", j.report.Bytes, j.policy.TotalBytes)})
	}
	return nil
}
