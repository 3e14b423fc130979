package take

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/atoll-run/atoll/internal/contentpolicy"
	"github.com/atoll-run/atoll/internal/relay"
	"github.com/atoll-run/atoll/internal/relay/content"
	"github.com/atoll-run/atoll/internal/relay/git"
	"github.com/atoll-run/atoll/internal/relay/rewrite"
)

// Offer is what the agent committed and the host's repository has on no branch.
type Offer struct {
	Branch   string                `json:"branch"` // that the agent works on; "" if HEAD is detached
	Head     string                `json:"head"`   // "" if there is no commit
	Commits  []Commit              `json:"commits"`
	Verdict  contentpolicy.Verdict `json:"verdict,omitempty"` // of all; "" passes
	Report   *content.Report       `json:"report,omitempty"`  // nil if there are no commits
	Others   []string              `json:"others,omitempty"`  // further branches with commits that the host lacks
	repo     *git.Repo
	hostHead string
	host     []string // commits that the host has
	known    []string // these, and those whose signed copies it has
}

// Commit is one commit of an agent. What came from inside is made printable.
type Commit struct {
	ID       string                  `json:"id"`
	Subject  string                  `json:"subject"`
	Author   string                  `json:"author"`
	When     time.Time               `json:"when"`
	Files    []string                `json:"files"`          // changed ones, at most maxFiles
	More     int                     `json:"more,omitempty"` // changed files beside these
	Verdict  contentpolicy.Verdict   `json:"verdict,omitempty"`
	Findings []contentpolicy.Finding `json:"findings,omitempty"`
}

// maxFiles is how many changed files of a commit are listed.
const maxFiles = 1000

// ErrChanged means that the agent committed meanwhile.
var ErrChanged = errors.New("the agent's commits changed meanwhile")

// Commits returns what there is to take, judged. from is a branch inside; "" is
// what is checked out there.
func (w *Workspace) Commits(ctx context.Context, from string) (*Offer, error) {
	release, err := w.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return w.offer(ctx, from)
}

func (w *Workspace) offer(ctx context.Context, from string) (*Offer, error) {
	seen, err := w.look(ctx)
	if err != nil {
		return nil, err
	}
	o, ref, err := newOffer(seen, from)
	if err != nil || o.Head == "" {
		return o, err
	}
	if o.hostHead, _, err = w.Checkout.Head(); err != nil {
		return nil, err
	}
	if none, err := w.hasAll(seen, o); err != nil || none {
		return o, err
	}
	if o.repo, err = w.open(ctx, o.Head); err != nil {
		return nil, err
	}
	if o.host, err = w.hostCommits(ctx, o.repo); err != nil {
		return nil, err
	}
	if err := w.fetch(ctx, o.repo, ref, o.Head, o.host); err != nil {
		return nil, err
	}
	signed, err := w.signedCommits(ctx, o.repo, o.host)
	if err != nil {
		return nil, err
	}
	o.known = append(signed, o.host...)
	return o, errors.Join(w.judge(ctx, o), w.findOthers(ctx, seen, o))
}

// hasAll reports whether the agent has checked out what the host has, and no branch
// that the host has no ref of: then there is nothing to fetch and judge.
func (w *Workspace) hasAll(seen *inside, o *Offer) (bool, error) {
	if o.Head != o.hostHead {
		return false, nil
	}
	ids, err := tips(w.Checkout)
	for _, id := range seen.branches {
		if !slices.Contains(ids, id) {
			return false, err
		}
	}
	return err == nil, err
}

// Handover returns the commits for a relay, which judges and sends them.
func (o *Offer) Handover() relay.Commits {
	return relay.Commits{Repo: o.repo, Head: o.Head, Known: o.host}
}

// newOffer names what is asked for.
func newOffer(seen *inside, from string) (o *Offer, ref string, err error) {
	o = &Offer{Branch: strings.TrimPrefix(seen.ref, heads), Head: seen.head, Commits: []Commit{}}
	if from == "" || from == o.Branch {
		return o, cmp.Or(seen.ref, "HEAD"), nil
	}
	if err := checkBranch(from); err != nil {
		return nil, "", err
	}
	o.Branch, o.Head = from, seen.branches[heads+from]
	if o.Head == "" {
		return nil, "", fmt.Errorf("the agent has no branch %s", from)
	}
	return o, heads + from, nil
}

// hostCommits returns the commits that the host's repository has by its refs.
func (w *Workspace) hostCommits(ctx context.Context, repo *git.Repo) ([]string, error) {
	ids, err := tips(w.Checkout)
	if err != nil {
		return nil, err
	}
	return commitsOf(ctx, repo, ids)
}

// judge fills in the commits and what the policy says of them.
func (w *Workspace) judge(ctx context.Context, o *Offer) (err error) {
	base := git.EmptyTree
	if o.hostHead != "" {
		if base, err = o.repo.MergeBase(ctx, o.hostHead, o.Head); err != nil {
			return err
		}
	}
	o.Report, err = content.JudgeBeside(ctx, o.repo, content.Beside{Base: cmp.Or(base, git.EmptyTree), Head: o.Head, Known: o.known}, w.Policy)
	if err != nil {
		return fmt.Errorf("judge the commits: %w", err)
	}
	if o.Verdict = o.Report.Verdict(); len(o.Report.Commits) == 0 {
		return nil
	}
	commits, err := o.repo.Commits(ctx, o.Report.Commits)
	if err != nil {
		return err
	}
	return o.repo.EachChanges(ctx, commits, func(c *git.Commit, changes []git.Change) error {
		o.Commits = append(o.Commits, describe(c, changes, o.Report))
		return nil
	})
}

// describe is a commit for people.
func describe(c *git.Commit, changes []git.Change, report *content.Report) Commit {
	d := Commit{
		ID: c.ID, Author: printable(c.Author.Name + " <" + c.Author.Email + ">"), When: time.Unix(c.Author.When, 0).UTC(),
		More: max(0, len(changes)-maxFiles), Files: []string{},
	}
	d.Subject, _, _ = strings.Cut(rewrite.Message(c.Message), "\n")
	for i := range changes[:min(len(changes), maxFiles)] {
		d.Files = append(d.Files, changes[i].Path)
	}
	for _, f := range report.Findings {
		if f.Commit == c.ID {
			d.Findings = append(d.Findings, f)
		}
	}
	d.Verdict = (&content.Report{Findings: d.Findings}).Verdict()
	return d
}

// maxPrintable is how many characters of a name are shown.
const maxPrintable = 200

// printable is text on one line without what terminals act upon.
func printable(text string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(text, "?")))
	return string(runes[:min(len(runes), maxPrintable)])
}

// findOthers names the branches of the agent that the host has no commit of.
func (w *Workspace) findOthers(ctx context.Context, seen *inside, o *Offer) error {
	for ref, id := range seen.branches {
		if id == o.Head || slices.Contains(o.known, id) {
			continue
		}
		objects, err := o.repo.Stat(ctx, []string{id})
		if err != nil {
			return err
		}
		if objects[0].Type == "commit" {
			commits, err := o.repo.Range(ctx, append([]string{o.Head}, o.known...), id, 0)
			if err == nil && len(commits) == 0 {
				continue
			}
		}
		o.Others = append(o.Others, strings.TrimPrefix(ref, heads))
	}
	slices.Sort(o.Others)
	return nil
}
